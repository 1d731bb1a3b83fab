"""What the FAQ answers say: for each topic a definition, its use, its risk, and the number to look at.

Written for this program; `{a|b}` are wordings of the same fact. `what` and `number` are noun phrases, `why` and
`risk` are clauses that can follow "because" and "that".
"""

from __future__ import annotations

from typing import NamedTuple


class Fact(NamedTuple):
    """The four facts of one topic, as templates."""

    what: str
    why: str
    risk: str
    number: str


FACTS: dict[str, Fact] = {
    "in-flight batching": Fact(
        "a {way|method} of scheduling that {adds and removes|lets in and lets out} requests at {every|each} iteration",
        "the batch stays {full|filled} while {short and long|small and large} requests {come and go|start and finish}",
        "a {very long|huge} prompt can still {delay|hold up} the {tokens|answers} of its {neighbours|companions}",
        "the {number|count} of {requests|sequences} per iteration",
    ),
    "the paged KV cache": Fact(
        "a {store|memory} of keys and values that is {cut|divided} into blocks of {equal|the same} size",
        "memory is {handed out|given away} block by block, so {little|hardly any} of it is {wasted|lost}",
        "a pool that is too {small|tight} {leads to|ends in} {paused|preempted} requests",
        "the share of {used|occupied} blocks",
    ),
    "prefix reuse": Fact(
        "the {habit|practice} of keeping {full|complete} blocks so that a {later|new} request can {take|share} them",
        "the {common|shared} beginning of {many|several} prompts is {computed|worked out} only once",
        "one {different|changed} token at the {start|front} makes {all|every one} of the later blocks {new|useless}",
        "the {share|part} of prompt tokens that {were reused|came from the cache}",
    ),
    "chunked context": Fact(
        "the {cutting|splitting} of a long prompt into {pieces|chunks} that run in {several|different} iterations",
        "{other|running} requests go on {producing|giving} tokens {beside|next to} the prompt",
        "{chunks|pieces} that are too {small|short} make {poor|bad} use of the device",
        "the {number|count} of context tokens in {an|each} iteration",
    ),
    "speculative decoding": Fact(
        "a method in which {cheap|quick} guesses are {checked|verified} by the large model in {one|a single} pass",
        "{several|many} tokens can be {accepted|kept} for the {price|cost} of one pass",
        "at {large|big} batch sizes the {extra|added} work may cost more than it {saves|brings}",
        "the {rate|share} of accepted tokens at each position",
    ),
    "n-gram drafting": Fact(
        "a drafter {without|with no} weights that {repeats|copies} what {followed|came after} the same words before",
        "it costs {almost nothing|very little} and {works|does} well when the answer {repeats|quotes} the prompt",
        "it {rarely|seldom} helps with {free|new} text",
        "the {mean|average} number of accepted tokens per step",
    ),
    "a draft model": Fact(
        "a {small|little} model that {proposes|suggests} tokens which a {large|big} model then {checks|judges}",
        "it {follows|imitates} the style of the large model at a {small|tiny} part of its {cost|price}",
        "its own cache {takes|needs} memory and its own passes {take|need} time",
        "the time {spent on|given to} drafting in each iteration",
    ),
    "pipeline parallelism": Fact(
        "the {division|split} of the layers into stages that {pass|hand} their results to the next {device|GPU}",
        "each {device|GPU} has to {hold|store} only its own {layers|part of the model}",
        "stages {wait|stand idle} when there are too few micro-batches",
        "the {share|fraction} of time in which a stage is {idle|waiting}",
    ),
    "tensor parallelism": Fact(
        "the {division|split} of {each|every} weight matrix over several {devices|GPUs} that {add|sum} their results",
        "all {devices|GPUs} {work|take part} in each layer, which {lowers|shortens} the latency",
        "every layer {needs|asks for} an all-reduce, so the {link|connection} must be {fast|quick}",
        "the {share|part} of time in {collectives|all-reduce kernels}",
    ),
    "a micro-batch": Fact(
        "a {part|slice} of the batch that {travels|moves} through the pipeline {alone|on its own}",
        "{several|many} of them keep {all|the} stages busy at the same {time|moment}",
        "very {small|short} ones {waste|lose} time on {launch overhead|starting kernels}",
        "the time per stage and micro-batch",
    ),
    "a pipeline bubble": Fact(
        "the time in which a stage has {nothing|no work} to do because its input has not {arrived|come}",
        "it {shows|tells} how far the pipeline is from its {ideal|best} speed",
        "an {uneven|unequal} split of the layers makes it {larger|longer}",
        "{idle|waiting} time divided by {total|all} time",
    ),
    "preemption": Fact(
        "the {act|step} of taking the blocks from a running request so that {others|the rest} can go on",
        "the engine can {admit|accept} more requests than the worst case would {allow|permit}",
        "the paused request must be {computed|built up} again {later|afterwards}, which costs time",
        "the {number|count} of paused requests",
    ),
    "the scheduler": Fact(
        "the {part|piece} of the engine that {decides|chooses} which requests {run|take part} in the next iteration",
        "it {balances|weighs} the {latency|waiting time} of one request against the {speed|throughput} of all",
        "a policy without {limits|bounds} can {starve|forget} old requests",
        "the {time|pause} between two iterations",
    ),
    "the block table": Fact(
        "a {list|table} that {gives|names} the {physical|real} block behind each {logical|numbered} block of a request",
        "the cache can be {scattered|spread} over the memory without {moving|copying} any data",
        "it must be {sent|copied} to the device in {each|every} iteration",
        "the {number|count} of blocks per request",
    ),
    "a CUDA graph": Fact(
        "a {recorded|stored} series of kernel launches that {runs|starts} with one call",
        "the {cost|price} of {starting|launching} many {small|short} kernels {nearly|almost} vanishes",
        "the {shapes|sizes} and addresses must stay the {same|way they were} between two {replays|runs}",
        "the {gap|pause} between two kernels",
    ),
    "kernel fusion": Fact(
        "the {joining|merging} of several operations into {one|a single} kernel",
        "{partial|intermediate} results stay in registers and {need|do} not {travel|go} through memory",
        "a {fused|merged} kernel is {harder|more difficult} to {read|follow} in a profile",
        "the {number|count} of kernels per layer",
    ),
    "quantization": Fact(
        "the {storage|keeping} of weights or activations in {fewer|not so many} bits",
        "{less|a smaller amount of} memory has to be {read|moved} for each token",
        "the {answers|results} should be {checked|tested} on a {real|true} task",
        "the memory {bandwidth|traffic} that is {reached|achieved}",
    ),
    "the context phase": Fact(
        "the {phase|step} that {reads|computes} all tokens of the prompt and {fills|writes} the cache",
        "its many tokens keep the {arithmetic|tensor} units {busy|at work}",
        "it {delays|puts off} the first token of the {answer|reply}",
        "the time to the first token",
    ),
    "the generation phase": Fact(
        "the {phase|step} that {produces|makes} one or a {few|handful of} tokens per request and iteration",
        "it is {limited|bound} by memory, so a {larger|bigger} batch is {almost|nearly} free",
        "it {reads|loads} the {whole|entire} cache of every request",
        "the time per output token",
    ),
    "the time to first token": Fact(
        "the time from the {arrival|coming} of a request to its first {output|answer} token",
        "it is what a {person|user} {feels|notices} as the response time",
        "it {includes|contains} the time in the {queue|waiting line}",
        "the {slowest|worst} five percent of all requests",
    ),
    "the inter-token latency": Fact(
        "the time between two {output|answer} tokens of {one|the same} request",
        "it {decides|says} how {smooth|steady} the answer {appears|looks}",
        "{speculation|speculative decoding} makes it {uneven|jumpy}",
        "its {mean|average} and its {largest|highest} value",
    ),
    "throughput": Fact(
        "the {number|count} of output tokens per second over {all|the whole set of} requests",
        "it {decides|tells} how many {users|people} one device can {serve|carry}",
        "it says {nothing|little} about the {latency|waiting time} of a single request",
        "tokens per second and {device|GPU}",
    ),
    "the roofline": Fact(
        "a {diagram|chart} that {sets|plots} the speed of a kernel against the {work|arithmetic} it does per byte",
        "it {shows|tells} whether memory or arithmetic is the {limit|bound}",
        "the peak {values|figures} must be those of the data type in {use|question}",
        "the {intensity|arithmetic per byte} of each kernel",
    ),
    "an attention kernel": Fact(
        "a kernel that {compares|matches} each query with the keys in the cache and {mixes|sums} the values",
        "it {joins|merges} several {steps|operations} and never {writes|stores} the large score matrix",
        "its time {grows|rises} with the {length|size} of the context",
        "its share of the {busy|kernel} time at {long|large} context lengths",
    ),
    "rejection sampling": Fact(
        "the {rule|test} that {keeps|accepts} a drafted token with a chance that depends on {both|two} models",
        "the {result|text} has {exactly|just} the distribution of the large model",
        "after the first {rejection|refusal} all later drafts are {dropped|thrown away}",
        "the accepted tokens per {step|iteration}",
    ),
    "the KV event stream": Fact(
        "a {list|series} of events that {tells|says} which blocks were stored, {reused|shared} or removed",
        "a {router|balancer} can send a request to the {server|machine} that {holds|has} its prefix",
        "the events must be {read|fetched} often because the buffer is {limited|small}",
        "the event {numbers|ids} and their {gaps|holes}",
    ),
    "LRU eviction": Fact(
        "the rule that the block which has not been {used|touched} for the longest time is {dropped|removed} first",
        "blocks that {many|several} requests share {stay|remain} in the cache",
        "one {pass|run} over many long prompts can {flush|clear} everything",
        "the {number|count} of {evicted|dropped} blocks",
    ),
    "host offload": Fact(
        "the {moving|copying} of cached blocks to the memory of the {host|CPU} when the device is {full|short of room}",
        "a block that {comes|is fetched} back is {cheaper|faster} than one that is computed {again|anew}",
        "the {copies|transfers} share the {bus|link} with {other|the rest of the} traffic",
        "the bytes {copied|moved} in both directions",
    ),
    "the token budget": Fact(
        "the {largest|highest} number of tokens that one iteration may {compute|handle}",
        "it {bounds|limits} the time of an iteration and {so|thereby} the latency",
        "a {small|low} budget {slows|drags out} the context phase",
        "the {scheduled|planned} tokens per iteration",
    ),
    "the batch size": Fact(
        "the number of requests that {take part|run} in {one|the same} iteration",
        "the weights are {read|loaded} once for {all|the whole lot} of them",
        "each request {adds|brings} its own cache and its own {latency|delay}",
        "tokens per second at {different|several} batch sizes",
    ),
    "a stream": Fact(
        "a {queue|line} of device work that is {carried out|executed} in order",
        "copies and kernels of {different|separate} streams can {overlap|run side by side}",
        "a {missing|wrong} wait between two streams {gives|leads to} wrong results",
        "the {overlap|common time} of copies and kernels",
    ),
    "an all-reduce": Fact(
        "a {step|operation} that {adds|sums} a tensor over all devices and {gives|hands} everyone the result",
        "it {joins|collects} the {partial|separate} results of tensor parallelism",
        "the {slowest|last} device {decides|sets} the time for all of them",
        "the time that each rank {waits|has to wait} for the others",
    ),
    "a profiler range": Fact(
        "a {named|labelled} stretch of time that the program {marks|records} by itself",
        "kernels can be {traced|led} back to the part of the {model|program} that {caused|started} them",
        "too many ranges {slow the program down|hold the program back}",
        "the {self time|own time} of each range",
    ),
    "an idle gap": Fact(
        "a {stretch|piece} of time in which the device {runs|has} no kernel at all",
        "{each|every} one has a cause that can be {named|found} and {often|perhaps} removed",
        "{many|a thousand} short ones can cost more than one {long|large} one",
        "the idle time by {cause|reason}",
    ),
    "load balance": Fact(
        "the {even|fair} spread of work over all {stages|experts} of the model",
        "no device has to {wait|stand idle} for {another|its neighbour}",
        "the {input|text} decides which expert has work, so it {changes|shifts} over time",
        "the {ratio|quotient} of the {largest|highest} load to the mean",
    ),
    "mixture of experts": Fact(
        "a layer with {many|several} feed-forward parts of which each token {uses|visits} only a few",
        "the model can {hold|know} more without {computing|working} more per token",
        "{small|tiny} batches {read|load} many experts for {few|a handful of} tokens",
        "the tokens per expert in {each|an} iteration",
    ),
}
