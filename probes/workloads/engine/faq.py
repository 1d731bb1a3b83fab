"""Questions about LLM inference and their answers: topics of `facts` times forms of question."""

from __future__ import annotations

from random import Random

from .facts import FACTS
from .grammar import fill, held_out, sentence

_LOOK = "{To see it, look at|The number to watch is|Keep an eye on|You can see it in}"
_HELPS = "{It helps because|It is useful because|People use it because|The point is that}"
_MIND = "{Keep in mind that|Be aware that|Remember that|One caveat is that}"

FORMS: dict[str, tuple[str, str]] = {
    "what": (
        "{What is {x}?|Explain {x}.|What does {x} mean?|Please describe {x}.}",
        "{x} is {what}. " + _HELPS + " {why}. " + _LOOK + " {number}.",
    ),
    "why": (
        "{Why is {x} useful?|What is {x} good for?|What is the benefit of {x}?}",
        "{x} is {useful|good|worth having} because {why}. " + _MIND + " {risk}.",
    ),
    "risk": (
        "{What should I watch out for with {x}?|What is the risk of {x}?|What can go wrong with {x}?}",
        "With {x}, {keep in mind|be aware|remember} that {risk}. {A good sign to watch is|You can see it in} {number}.",
    ),
    "number": (
        "{Which number shows {x}?|How do I measure {x}?|Where can I see {x}?}",
        "{To measure {x}, look at {number}|The number for {x} is {number}}. {In short|In a word}, it is {what}.",
    ),
    "checklist": (
        "{Give me a checklist for {x}.|List the main points of {x}.}",
        "{Checklist for|Main points of} {x}:\n1. {What it is|Meaning}: {what}.\n2. {Why|Use}: {why}.\n"
        "3. {Careful|Risk}: {risk}.\n4. {Measure|Number}: {number}.",
    ),
    "short": (
        "{Explain {x} in one sentence.|What is {x}, in short?|Define {x}.}",
        "{x} is {what}.",
    ),
    "beginner": (
        "{I am new here. What is {x}?|Explain {x} to a beginner.|What is {x}, in plain words?}",
        "{Think of {x} as|In plain words, {x} is} {what}. {This matters because|That is nice because} {why}.",
    ),
    "when": (
        "{When does {x} matter?|When should I care about {x}?|Do I have to think about {x}?}",
        "{You should care about|Think about} {x} when you {notice|see} that {risk}. "
        "{Then|In that case} look at {number}.",
    ),
    "always": (
        "{Is {x} always good?|Does {x} have a downside?|Is {x} free?}",
        "{Not quite.|Not always.|No.} {It is true that|Granted,} {why}, but {risk}. Let {number} decide.",
    ),
    "compare": (
        "{How does {x} differ from {y}?|What is the difference between {x} and {y}?}",
        "{x} is {what}. {y}, {in contrast|on the other hand|however}, is {other}.",
    ),
}


def question(random: Random, unseen: bool) -> tuple[str, str]:
    """A question and an answer to it, from the combinations kept out of training (`unseen`) or from the others."""
    while True:
        form, topic = random.choice(list(FORMS)), random.choice(list(FACTS))
        other = random.choice([name for name in FACTS if name != topic])
        if held_out(form, topic, *([other] if form == "compare" else [])) is unseen:
            break
    asked, answered = FORMS[form]
    bound = {"x": topic, "y": other, "other": FACTS[other].what, **FACTS[topic]._asdict()}
    return fill(asked, random, bound), _sentences(fill(answered, random, bound))


def questions(form: str, topic: str, other: str) -> set[str]:
    """Every wording of one question; `other` is the topic that "compare" sets against `topic`."""
    asked = FORMS[form][0].replace("{x}", topic).replace("{y}", other)
    return set(asked.strip("{}").split("|"))


def _sentences(text: str) -> str:
    lines = ("\n".join(sentence(line) for line in text.split("\n"))).split(". ")
    return ". ".join(sentence(line) for line in lines)
