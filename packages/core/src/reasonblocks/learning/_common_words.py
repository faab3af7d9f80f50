"""Lists capitalised words that name no person: sentence starts, products, places, words that programs print."""

from __future__ import annotations

NO_NAMES = frozenset(
    # first words of sentences and headings
    "a about above access according account action actions add additional address after again all also although "
    "always an and another answer any api are argument arguments as ask assert at available back based because "
    "before below best between both build but by call can cannot change check checking class clear click close "
    "code column command commands compare complete config confirm consider contact context continue correct could "
    "create current data database date day dear default define delete description did directory do does done "
    "double each either else empty ensure enter error errors even every example exception execute expected failed "
    "failure false field fields file files final finally find finding first fix flight flights folder following "
    "for found friday from full function further get getting give given go good group had has have he hello help "
    "hence her here hi his home how however i id if import in index input insert inspect install instead into "
    "invalid is issue it item its key kind last later latest let like line list load loading local log look "
    "looking main make many may maybe message method missing module more most move must my name names need never "
    "new next no none not note nothing now null number object ok okay old on once one only open option or order "
    "orders other our out output over page parameter password path perhaps permission please possible previous "
    "print problem process proceed project provide query question read reading ready reason received regards "
    "remove replace reply report request required response result results retry return returned review right row "
    "run running same save search second secret see select send server service set settings she should show "
    "similarly simply since so some sorry source start state status step steps still stop string such sure system "
    "table take task tell test tests than thank thanks that the their them then there these they thing this those "
    "though thought three through thus time timeout title to token too tool total traceback true try trying two "
    "type unable under unexpected unfortunately unknown until update upon usage use user users using valid value "
    "values verify version view wait warning was we welcome well were what when where whether which while who why "
    "will with within without world would write writing wrong das der die ein eine yes yet you your monday "
    "tuesday wednesday thursday saturday sunday "
    # products and related words
    "python java javascript typescript rust golang kotlin ruby perl scala swift docker kubernetes linux windows "
    "ubuntu debian fedora android chrome firefox safari edge google microsoft amazon apple azure aws visual "
    "studio stack overflow github gitlab git jira slack zoom excel word outlook office teams drive cloud flask "
    "django react angular vue node redis postgres mysql mongo sqlite oracle kafka spark hadoop airflow jenkins "
    "terraform ansible nginx apache pytest numpy pandas pytorch tensorflow keras jupyter notebook anaconda conda "
    "pip npm yarn maven gradle json yaml xml html css sql http https rest graphql openai anthropic claude gemini "
    "chatgpt gpt llama wikipedia youtube twitter facebook linkedin instagram reddit macbook iphone ipad intel "
    "nvidia tesla unicode ascii utf bash shell powershell terminal internet explorer web browser machine learning "
    "deep neural network markdown readme license public private general big bearer basic authorization content "
    "accept agent mozilla "
    # places of two words
    "york san francisco los angeles united states kingdom hong kong zealand las vegas north south east west "
    "america europe asia africa australia london paris berlin germany france spain italy china japan india "
    "canada".split()
)
"""In lower case. Each of them delimits a name: "When Ann Lee" contains two words of a name."""

IN_CAPITALS = frozenset(
    "abort absent accept action active alter am analyze api app args arn ascii asc assert auto avg aws backup "
    "base be begin bios blob body break buffer build bug byte cache case cast cd change char cert ci cli clone "
    "cluster cmd code collate column commit conflict connect connection constraint copy core count cpu cr crlf "
    "cross csv current cursor danger database db dead debug declare delimiter deny denied desc describe dev diff "
    "dir disk distinct div dns drop dtd dump duplicate ec end engine enum env eof err escape except exec exists "
    "exit explain export extract fail fatal fetch fixme float foreign format full ftp get gmt gpu grant group "
    "having head heap high host html http https ide ignore inner int integer interval intersect io ip is join "
    "jpeg json jwt kb kill lan left len length level like limit link linux live lock long low lower mac macro "
    "mail max mb md memory merge min minus mode mysql nan natural net no node not notnull null num ok oom "
    "operation os outer parse partition patch pattern pdf php pid ping pk png port post pragma pre primary prod "
    "protocol proxy put ram rename references release refused regex reject rest restrict rollback rom root rpc "
    "rsa sdk schema script section sequence session sftp sha show signal size smtp socket sql ssd ssh ssl stderr "
    "stdin stdout stop sudo sum summary support syntax tar tcp temp temporary text todo tls todo top trace "
    "transaction trigger truncate tty txt udp ui undefined union unique unit unsigned update upper uri url us usa "
    "utc utf uuid vacuum values varchar varying vm void vpn where window work xml yaml zip zone violation lost "
    "killed aborted overflow success passed skipped warnings info important caution attention stack".split()
)
"""Added to `NO_NAMES`, in lower case: words of SQL, of protocols and of tool output."""

ACCOUNTS = frozenset(
    "root user users admin administrator ubuntu debian ec2-user centos runner runneradmin vagrant app node jovyan "
    "circleci vscode codespace coder public default git www-data daemon nobody guest test tester testuser system "
    "postgres mysql redis nginx jenkins docker staff wheel home shared all me you none null true false self "
    "undefined agent assistant human bot model swebench openhands anonymous username login name the a an any "
    "other bin sys sudo local service build builder ci deploy devuser developer dev work workspace project "
    "projects repo data src code linuxbrew string str id int it is and or not for in of to see file".split()
)
"""Accounts and home folders that belong to no person, and placeholders for an account."""
