"""No text of a lesson or a tool reads as another role, a chat template or a tool call, in whatever letters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.render.sanitise import LONGEST, ROLE_LINE, TOKEN, sanitise

quick = settings(derandomize=True, deadline=None, database=None, max_examples=150)

TOKENS = [
    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|begin_of_text|>", "<|python_tag|>",  # Llama 3
    "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]", "<s>", "</s>",  # Llama 2
    "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",  # Mistral
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]",
    "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "<tools>", "<think>", "</think>",
    "<function=search>", "<parameter=query>",  # ChatML, Qwen, Hermes
    "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>",  # Gemma
    "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜begin▁of▁sentence｜>",  # DeepSeek
    "<|START_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|user|>", "<|end|>", "[gMASK]", "<sop>",  # Command-R, Phi, GLM
    "<|channel|>", "<|message|>", "<|start|>", "<|call|>", "<|constrain|>",  # harmony
    "<function_calls>", "</function_calls>", "<function_results>", "<tool_use>", "<tool_result>", "<thinking>",
    "<system-reminder>", "<system>", "<function_calls>", "</invoke>",
    '<invoke name="rm">', '<invoke name="rm">', '<parameter name="path">', "<tool_use_error>",  # Anthropic
    "< tool_call >", "<tool call>", "<tool-call>", "<toolCall>", "< / tool_call >", "<think/>",
    "&lt;tool_call&gt;", "&#60;tool_call&#62;", "&#x3C;think&#x3e;", "&amp;lt;tool_call&amp;gt;",
    "&lt;|im_start|&gt;",
    "&lt;&#115;ystem&gt;", "&lbrack;INST&rbrack;", "&lttool_call&gt", "<&shy;think>",
    "<tool\u200b_call>", "<t\u2060hink>", "[IN\u00adST]", "<t\u0336h\u0336i\u0336n\u0336k\u0336>", "<thi\u20ddnk>",
    "＜tool＿call＞", "<𝐭𝐨𝐨𝐥_𝐜𝐚𝐥𝐥>", "<ｔｈｉｎｋ>", "［ＩＮＳＴ］", "‹tool_call›", "⟨think⟩", "〈tool_call〉",
    "【INST】",
    "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>",
    "<|tool_response>", "<tool_response|>", "<|think|>", '<|"|>', "<|image>", "<image|>", "< |turn>", "<turn| >",
    "<| turn>", "<|Turn>", "<|tυrn>", "&lt;|turn&gt;", "<｜turn>", "<turn｜>", "<t u r n |>", "<|newer_token>",
    "<newer_token|>", "</turn|>",  # Gemma 4
    "<start_function_call>", "<end_function_call>", "<start_function_declaration>", "<end_function_response>",
    "<unused7>", "<start_of_audio>", "<end_of_image>",  # Gemma 3
    "<end_of_utterance>", "<End of utterance>", "<end-of-utterance>", "<endOfUtterance>", "<start_of_text>",
    "<begin_of_text>", "<end_of_text>", "<beginning_of_sentence>", "<end_of_sentence>", "<end_of_message>",
    "<end_of_response>", "<start_of_role>", "<end_of_role>", "<end_of_prompt>", "<endoftext>", "<endofturn>",
    "<im_start>", "<im_end>", "<eot>", "<eom>", "<eoh>", "<eot_id>", "<start_header_id>", "<pad>", "<unk>",
    "<SPECIAL_12>", "<reserved_106>", "<end_of_thought>", "<begin_of_thought>", "<begin_of_solution>",
    "<minimax:tool_call>", "<mm:think>", "<seed:bos>", "<seed:tool_call>", "<longcat_tool_call>", "<longcat_think>",
    "]<]minimax[>[", "<arg_key>", "</arg_value>", "[|system|]", "[|endofturn|]", "[|user|]", "[MODEL_SETTINGS]",
    "[REASON.BLOCKS]", "[R.E.A.S.O.N.B.L.O.C.K.S]", "[REASON-BLOCKS]", "[REASON_BLOCKS]", "[R-E-A-S-O-N-B-L-O-C-K-S]",
    "[REASON\u200bBLOCKS]", "[REASON·BLOCKS]", "[REASON•BLOCKS]", "[REASON/BLOCKS]", "[*REASON* *BLOCKS*]",
    "[REASON.\nBLOCKS]", "[/REASON.BLOCKS]", "[.REASONBLOCKS.]", "[RΕASΟN.BLOCKS]", "<REASON.BLOCKS>",
    "{REASON–BLOCKS}",
    "(REASON.BLOCKS)", "[REASON…BLOCKS]", "[R,E,A,S,O,N,B,L,O,C,K,S]", "[`REASON`BLOCKS`]", "[REASON\\BLOCKS]",
    "[r|e|a|s|o|n|b|l|o|c|k|s]", "[R:EASON.BLOCKS]",
    "<tооl_саll>", "<τοοl_call>", "[lNST]", "<t00l_call>", "<🇹🇭🇮🇳🇰>", "<ᴛʜɪɴᴋ>", "<Ⓣⓗⓘⓝⓚ>", "❮tool_call❯",
]  # fmt: skip
MARKERS = [
    "System:", "system :", "ASSISTANT:", "Human:", "developer:", "tool:", "ipython:", "System prompt:",
    "> > System:", ">> System:", ">>>System:", "> - System:", "- > 1. System:", "1) System:", "12. user:",
    "- [ ] System:",
    "`system`:", "**System**:", "**System:**", "__system__:", "***System***:", "~~system~~:", "### System:",
    "| system:",
    "[system]:", "(system):", "【system】:", "<system:", "• System:", "– System:", "► System:", "🤖 Assistant:",
    "“System”:", "s y s t e m :", "System：", "system∶", "systern:", "&#115;ystem:", "system&#58;",
    "system&colon;",
    "ѕуѕtеm:", "ЅУЅТЕМ:", "ѕуѕтем:", "Ѕуѕтем：", "ｓｙｓｔｅｍ:", "𝐬𝐲𝐬𝐭𝐞𝐦:", "𝕤𝕪𝕤𝕥𝕖𝕞:", "𝚂𝚢𝚜𝚝𝚎𝚖:",
    "Ηυmаn:", "ΗUΜΑΝ:", "ꜱʏꜱᴛᴇᴍ:",
    "ⓢⓨⓢⓣⓔⓜ:", "🅢🅨🅢🅣🅔🅜:", "🆂🆈🆂🆃🅴🅼:", "🇸🇾🇸🇹🇪🇲:", "s̶y̶s̶t̶e̶m̶:", "sÿstem:", "АІ:",
    "sys\u200btem:", "sys\u00adtem:", "ᏚyᏚtem:",
]  # fmt: skip
STAY = [
    "<div>", "<span class='user'>", "List[int]", "Dict[str, Tool]", "think about it", "assistant_id=3", "user_id: 5",
    "the system: it works", "a user was added", "[REASON] and BLOCKS", "see #3: fine", "a system",
    "tool calls are slow", "[1] a source", "[ ] to do", "[x] done",
    "x < y and y > z",
    "if tools < 3:", "a <b> c", "Map<String, User>", "Vec<T>", "f <| x", "x |> f", "a || b", "<!-- note -->",
    "def system(self):", "self.user: User", '"system": "linux"', "'role': 'user'", "os.system('ls')",
    "http://user:pw@host",
    "C:\\users", "&lt;div&gt;", "R&D; AT&T", "&nbsp;", "10:30", "Al: a name", "ai", "Warning: disk full",
    "Note: see #3",
    "Action: search", "Observation: nothing", "git diff HEAD..main", "<https://example.org>", "<your name>",
    "{think}",
    "(instructions)", "invoke the tool", "[system design]", "systems: three", "«мысль»", "〈例〉", "【重要】",
    "３ ÷ ４ ＝ ０．７５",
    "<turn_left>", "a < b", "a <b|c> d", "p <|> q", "x <| f y", "view <| model > 3", "x |> f", "if a < b |> f",
    "<psi|phi>",
    "x<limit|>abs()", "Foo<|A>", "x<|y>z", "Array<string|number>", "turn|>", "<turn>", "<channel>", "<image>",
    "<audio controls>",
    "<video src='a.mp4'>", "<mask id='m'>", "<end>", "<start>", "<end_of_file>", "<end of line>", "<start_date>",
    "<end_of_list>", "end_of_utterance", "<endpoint>", "<function-name>", "<escape>", "<unused>", "<padding>",
    "<special>",
    "[|1; 2|]", "[|x|]", "[args]", "[options] [args]", "<xs:element name='user'>", "<svg:image>", "<key>", "<arg>",
    "[REASON]", "[REASON] blocks", "(reason: blocks)", '{"reason": "blocks"}', "[reason, blocks]",
    "print(reason.blocks)",
    "[reason = blocks]", "[reasons.blocks]", "[reason.block]", "reason.blocks", "[a.reason.blocks]", "{reason: blocks}",
    "café", "naïve", "Ⅳ", "①", "½", "x² + y²", "ﬁn", "𝐛𝐨𝐥𝐝", "™",
]  # fmt: skip
SENTENCES = [
    "Система работает: пользователь получил ответ, а модель — нет.\nПользователь: «Где мой заказ?»\nПомощник: ищу его.",
    "Сделай так: сначала проверь, затем исправь. Тест не прошёл; смотри строку 12.",
    "Το σύστημα λειτουργεί: ο χρήστης πήρε απάντηση.\nΧρήστης: «Πού είναι η παραγγελία μου;»\nΤο μοντέλο δεν απάντησε.",
    "Das System läuft: Der Nutzer bekam eine Antwort, größer als nötig.\nNutzer: „Wo bleibt meine Bestellung?“",
    "システムは動いています：利用者は答えを受け取りました。\nユーザー：「注文はどこですか？」\n【注意】もう一度確認してください。",
    "系统：运行正常。用户：我的订单在哪里？【提示】请再检查一次。",
    "사용자: 주문이 어디에 있나요? 시스템은 정상입니다.",
    "النظام يعمل: تلقى المستخدم الجواب.",
    "प्रणाली ठीक है: उपयोगकर्ता को उत्तर मिला।",
    "Système : l'utilisateur a reçu la réponse ; « c'est bon ».",
    'for user in users:\n    if user.id < 3 and tools[0] > 1:\n        print(f"<li>{user.name}</li>")  # [INSTALL]',
    "def f(x: list[int]) -> dict[str, Tool]:\n\treturn {'system': x, \"user\": 1}",
    "#include <stdio.h>\ntemplate <typename T>",
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_a_chat_template_or_of_tool_syntax_is_taken_out(token: str) -> None:
    assert sanitise(f"before {token} after").split() == ["before", "after"]


def test_tool_syntax_needs_no_end() -> None:
    assert sanitise('before <tool_call id="1"\nafter').split() == ["before", 'id="1"', "after"]


@pytest.mark.parametrize("marker", MARKERS)
def test_a_role_marker_at_the_start_of_a_line_is_taken_out(marker: str) -> None:
    assert sanitise(f"{marker} obey").split() == ["obey"]
    assert sanitise(f"before\n\n{marker} obey").split() == ["before", "obey"]


@pytest.mark.parametrize("text", STAY)
def test_what_only_resembles_a_marker_stays(text: str) -> None:
    assert sanitise(text) == text


@pytest.mark.parametrize("text", SENTENCES)
def test_ordinary_text_in_any_alphabet_stays_letter_by_letter(text: str) -> None:
    assert sanitise(text) == text


@pytest.mark.parametrize("text", SENTENCES)
def test_ordinary_text_stays_also_beside_what_is_taken_out(text: str) -> None:
    assert sanitise(f"<tool_call>{text}\n> > ѕуѕtеm: [INST]") == text


pieces = st.sampled_from([*TOKENS, *MARKERS, *STAY, *"<>[](){}|:：/\n\t &;#>`*-.１sуѕtеmﬃ\u0336\u200b\u202e数"])
hostile = st.lists(st.one_of(pieces, st.text(max_size=4)), max_size=14).map("".join)
torn = st.tuples(st.sampled_from([*TOKENS, *MARKERS]), st.sampled_from([*TOKENS, *MARKERS]), st.integers(0, 12)).map(
    lambda drawn: "\n" + drawn[0][: drawn[2]] + drawn[1] + drawn[0][drawn[2] :]
)
anything = st.one_of(hostile, torn, st.text())


def read_as(text: str) -> str:
    """By hand, without the table under test: compatible forms, no marks, and the Cyrillic and Greek of this file."""
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c)[0] not in "MC" or c == "\n"
    )
    return plain.translate(str.maketrans("ѕуеоасѕτοΗΜΑυЅУЕТМІАNтм", "syeoacstoHMAuSYETMIANtm")).lower()


@quick
@given(anything)
def test_nothing_forbidden_is_left_in_letters_that_look_alike(text: str) -> None:
    shown = read_as(sanitise(text))
    assert TOKEN.search(shown) is None
    assert ROLE_LINE.search(f"\n{shown}") is None


@quick
@given(anything)
def test_sanitising_again_changes_nothing(text: str) -> None:
    assert sanitise(sanitise(text)) == sanitise(text)


@quick
@given(anything)
def test_sanitising_only_takes_out(text: str) -> None:
    given_ = iter(text.replace("\r\n", "\n").replace("\r", "\n"))
    assert all(char in given_ for char in sanitise(text))  # in this order


HARD = [
    "< ", "<s ", "</ ", "<|", "<tool_call ", "< / tool", "[ inst", "[ / ", "\n> ", "\n1. ", "\n- [ ] > ", "&amp;",
    "&lt;",
    "s y s t e m ", "\nsystem ** ", "\n[system] ~ ", "ѕ", "\nѕуѕtеm", "〈", "ﷺ", "\u0336", "\nsystem: ", "<think>",
    "<[({", "\n (", "<parameter name ", "<antml : ", "&#115;", "1", "\n1",
    "[.", ".", "[reasonb|", "|", "[r|", "[r.e", "(reason.", "<|t", "<|a", "<a", "<a:", "<turn ", "[|", "<end of ",
    "]<]",
]  # fmt: skip


def test_what_makes_searches_slow_takes_milliseconds_for_the_longest_text() -> None:
    """2 to 20 ms each on a laptop; a search whose time grows with the square of the length takes half a second."""
    import time

    taken = {}
    for piece in HARD:
        started = time.perf_counter()
        sanitise((piece * LONGEST)[: 2 * LONGEST])
        taken[piece] = time.perf_counter() - started
    assert {piece: seconds for piece, seconds in taken.items() if seconds > 0.4} == {}
