"""Loops of agents that think in other languages than English."""

from __future__ import annotations

from tests.core.monitors.trajectories import Shelf, Stuck, bash, call, react

__all__ = ["LANGUAGES"]

LANGUAGES: Shelf[Stuck] = Shelf()


@LANGUAGES
def a_spanish_service_agent_asks_the_same_again_and_again() -> Stuck:
    thoughts = [
        "Voy a buscar los vuelos disponibles.",
        "Necesito ver los vuelos disponibles.",
        "Busco de nuevo los vuelos.",
        "Compruebo otra vez la disponibilidad.",
        "Consulto los vuelos una vez más.",
        "Otra vez los vuelos.",
    ]
    return Stuck(
        task="Reserva el vuelo más barato de Bilbao a Oporto para el viernes",
        before=[
            call(
                "Primero miro qué aeropuertos hay.",
                "list_airports",
                {"aeropuertos": ["BIO", "OPO"]},
                países=["ES", "PT"],
            )
        ],
        stuck=[
            call(thought, "search_flights", {"vuelos": []}, origen="BIO", destino="OPO", fecha="2024-05-17")
            for thought in thoughts
        ],
    )


@LANGUAGES
def a_chinese_coding_agent_runs_the_same_command_again_and_again() -> Stuck:
    thoughts = [
        "先编译整个项目。",
        "重新编译一次。",
        "再编译看看结果。",
        "我再试一次编译。",
        "继续编译。",
        "再次编译。",
    ]
    return Stuck(
        task="让项目在新的编译器上通过编译",
        before=[bash("查看目录结构。", "ls", "Makefile\nsrc\ninclude")],
        stuck=[
            bash(
                thought,
                "make -j4",
                "src/池.c:88:5: error: unknown type name 'ssize_t'\nmake: *** [Makefile:12: src/池.o] Error 1",
            )
            for thought in thoughts
        ],
    )


@LANGUAGES
def a_chinese_agent_rewords_a_search_that_finds_nothing() -> Stuck:
    queries = [
        "闰年 校验 函数",
        "校验 闰年 函数",
        "函数 闰年 校验",
        "闰年 函数 校验",
        "函数 校验 闰年",
        "校验 函数 闰年",
    ]
    thoughts = [
        "搜索闰年的校验。",
        "换一个说法再搜。",
        "还是没有，调整顺序。",
        "再换一种写法。",
        "继续搜索。",
        "再试一次。",
    ]
    return Stuck(
        task="找到校验闰年的函数",
        stuck=[
            call(thought, "search_code", "没有结果", query=query)
            for thought, query in zip(thoughts, queries, strict=True)
        ],
    )


@LANGUAGES
def an_arabic_agent_goes_back_and_forth_between_two_calls() -> Stuck:
    turns = []
    for n in range(4):
        turns.append(
            call(
                ["أتحقق من الرصيد أولاً.", "أتحقق من الرصيد مرة أخرى.", "ما هو الرصيد؟", "الرصيد من جديد."][n],
                "get_balance",
                {"الرصيد": 120},
                account="م-77",
            )
        )
        turns.append(
            call(
                ["ثم أراجع حد التحويل.", "وأراجع الحد كذلك.", "وما هو الحد؟", "والحد من جديد."][n],
                "get_limit",
                {"الحد": 100},
                account="م-77",
            )
        )
    return Stuck(task="حوّل مبلغ 110 من الحساب م-77 إلى الحساب م-12", stuck=turns, plain_at=5)


@LANGUAGES
def a_german_react_agent_searches_the_same_words_again_and_again() -> Stuck:
    thoughts = [
        "Ich suche nach dem Erbauer der Brücke.",
        "Den Erbauer muss ich noch finden.",
        "Ich suche erneut nach dem Erbauer.",
        "Vielleicht steht es doch dort.",
        "Noch einmal die Suche.",
        "Wer war der Erbauer?",
    ]
    miss = "Kein Artikel gefunden. Ähnlich: Brücke, Talbrücke."
    return Stuck(
        task="Wer hat die alte Talbrücke von Rautheim gebaut?",
        before=[react("Zuerst der Ort.", "Suche", "Rautheim", "Rautheim ist ein Stadtteil von Braunschweig.")],
        stuck=[react(thought, "Suche", "Talbrücke Rautheim Erbauer", miss) for thought in thoughts],
    )
