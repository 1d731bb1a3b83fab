"""What the free prose is made of: people, places, weather, things, and the order of sentences in six kinds of scene.

In a template `{name}`, `{he}`, `{him}`, `{his}` are the hero, `{friend}` a second person, `{role}`, `{place}` (with
its preposition), `{thing}` what the prompt asked for. Everything else is drawn from the lists below.
"""

from __future__ import annotations

WOMEN = "Anna|Clara|Edith|Grete|Ida|Johanna|Lena|Marta|Nora|Olga|Paula|Rosa|Sofia|Thea|Vera|Wilma"
MEN = "Albert|Bruno|Carl|Emil|Felix|Georg|Hugo|Jakob|Karl|Leo|Martin|Otto|Paul|Robert|Simon|Viktor"
PLACES = (
    "in a harbour town|in a mountain village|on a small island|in the old city|in a railway town|in a quiet valley"
    "|in a town by the river|in a village in the woods|in a suburb|in a fishing village|in a market town|on the heath"
)
WORDS: dict[str, str] = {
    "early": "{Early in the morning|Before sunrise|At dawn|Just after six|While the town still slept|At first light}",
    "later": "{An hour later|Towards noon|In the afternoon|After a while|A little later|When the bells rang twelve}",
    "evening": "{In the evening|At dusk|When the lamps were lit|Late that night|After supper|As it grew dark}",
    "weather": (
        "{a thin rain fell|snow lay on the roofs|the wind came from the sea|the air was clear and cold"
        "|fog hung over the fields|the sun was already warm|grey clouds moved quickly|it smelled of wet leaves}"
    ),
    "mood": "{calm|curious|tired|cheerful|nervous|hopeful|thoughtful|impatient|proud|uneasy}",
    "way": "{slowly|carefully|quickly|without a word|with a smile|with steady hands|almost silently|patiently}",
    "small": "{small|narrow|old|low|bright|dusty|crooked|plain|painted|wooden}",
    "room": "{kitchen|workshop|attic|hall|cellar|parlour|shed|study}",
    "sound": "{a knock|a whistle|footsteps|a distant bell|a dull crack|a low hum|somebody singing|the bark of a dog}",
    "food": "{bread and cheese|a bowl of soup|hot tea|apple cake|two boiled eggs|a pot of coffee|warm milk with honey}",
    "tool": "{a file|a hammer|a pair of pliers|a lamp|a brush|a needle|a magnifying glass|a rope|a ladder|a knife}",
    "colour": "{red|blue|green|yellow|white|black|grey|brown}",
    "few": "{two|three|four|five|six|seven|nine|ten|twelve}",
    "relative": "{grandmother|uncle|father|aunt|sister|brother|mother|neighbour}",
    "lesson": (
        "{patience is also a tool|the simplest way is often the best|nobody has to do everything alone"
        "|a good question is half the answer|things last longer when they are looked after"
        "|it is worth looking twice|small steps also reach the top}"
    ),
}
ROLES = (
    "baker|clockmaker|fisher|teacher|gardener|postman|carpenter|doctor|painter|ferryman|librarian|tailor|musician"
    "|engine driver|lighthouse keeper|beekeeper"
)
THINGS = (
    "broken clock|lost letter|blue boat|wooden flute|rusty key|silver spoon|old map|little bridge|paper kite"
    "|copper kettle|heavy trunk|music box"
)

OPENINGS = (
    "{place} there lived a {role} {named|called|by the name of} {name}.",
    "{name} was a {role} {place}.",
    "There was once a {role} {place} whose name was {name}.",
    "For {few} years {name} had worked as a {role} {place}.",
)
ENDINGS = (
    "{evening} {name} {thought|said to {friend}|wrote in {his} notebook} that {lesson}.",
    "Since that day {name} and {friend} {meet every {Sunday|Friday|Monday}|are good friends|write to each other}.",
    "{evening} {he} {went home|closed the door|lit the lamp} and {slept well|was content|smiled about the long day}.",
    "And the {thing} {still stands on the shelf|is still there today|was never lost again}.",
)

SCENES: dict[str, tuple[tuple[str, ...], ...]] = {
    "the workshop": (
        (
            "{early} {weather}, and {he} was {mood} when {he} opened the {small} workshop.",
            "{early} {weather}, but inside the {small} workshop it smelled of {oil|wood|glue|varnish}.",
        ),
        (
            "On the {bench|table|floor} lay a {thing} that {friend} had brought {yesterday|the week before}.",
            "{friend} came in and put a {thing} on the {bench|table}.",
        ),
        (
            '"{Can you mend|Can you save|What do you think of} it?" {asked|said} {friend}.',
            '"It belonged to my {relative}," said {friend} {way}.',
        ),
        (
            "{name} took {tool} and {looked at|opened|turned over|examined} the {thing} {way}.",
            "{he} {wiped|brushed} the dust away and {saw|found} a {small} crack.",
        ),
        (
            "One part was missing, {no bigger than a pea|as thin as a hair|made of brass}.",
            "Inside there was nothing but {rust|sand|a dead beetle|{colour} paint}.",
        ),
        (
            "{he} tried it {once|twice|{few} times}, but it {would not hold|broke again|did not fit}.",
            "{later} {he} heard {sound}, and the work had to wait.",
        ),
        (
            "Then {he} remembered a {small} box in the {room}.",
            "Then {friend} {held|lifted} the lamp a little higher, and {he} understood.",
        ),
        (
            "With {tool} and {tool} it took {him} {few} hours.",
            "{later} the piece slid into its place {with a click|as if it had always been there}.",
        ),
        (
            "{friend} {laughed|clapped|was silent for a while} and paid with {food}.",
            '"{As good as new|Better than before|I would not have believed it}," said {friend}.',
        ),
    ),
    "the journey": (
        (
            "{early} {he} packed {food} and a {thing} into a {colour} bag.",
            "{early} {weather}, and {name} set out with a {thing} under {his} arm.",
        ),
        (
            "The {train|coach|ferry|bus} was {late|nearly empty|full of soldiers|warm and noisy}.",
            "The road {ran along the river|climbed into the hills|was white with dust}.",
        ),
        (
            "Beside {him} sat {friend}, who was {mood} and {ate {food}|read a newspaper|knitted a {colour} scarf}.",
            "At the {second|third|next} stop {friend} got in and asked {way} if the seat was free.",
        ),
        (
            "They talked about {the weather|the harvest|music|the price of bread|their {relative}} until {weather}.",
            '"Where are you going with that {thing}?" asked {friend}.',
        ),
        (
            "{later} they had to stop, because {a tree lay across the way|the bridge was closed|a wheel was broken}.",
            "{later} they heard {sound}, and everybody stood up.",
        ),
        (
            "{name} took {tool} and helped {the driver|a farmer|the others} {way}.",
            "{Some waited|The others complained}, but {name} went on {on foot|through the fields|across the snow}.",
        ),
        (
            "After {few} miles they saw {a light|a {small} house|smoke|a tower} {between the trees|on the hill}.",
            "{evening} they reached {an inn|a farm|the station} where {food} stood on the table.",
        ),
        (
            "There {he} gave the {thing} to {his} {relative}, who {wept|laughed|did not say a word}.",
            "{his} {relative} was waiting at the {gate|door|corner} with a {colour} lantern.",
        ),
    ),
    "the garden": (
        (
            "Behind the house was a {small} garden with {few} {apple trees|pear trees|rose bushes|beehives}.",
            "That {spring|summer|autumn} {weather}, and the garden grew {way}.",
        ),
        (
            "{early} {he} went out with {tool} to {cut the hedge|water the beans|dig up the potatoes|pick cherries}.",
            "{he} was {mood}, for the {beans|roses|cabbages|tulips} had been eaten {again|overnight}.",
        ),
        (
            "Under the {hedge|roots|leaves} {he} found a {thing}, wrapped in {colour} cloth.",
            "The spade hit something hard, and it was a {thing}.",
        ),
        (
            '"Whose is it?" {he} called over the {fence|wall}, and {friend} came {way}.',
            "{friend} leaned on the {fence|wall} and {ate {food}|looked {mood}|whistled}.",
        ),
        (
            '"My {relative} hid it there {few} years ago," said {friend}.',
            "Nobody there {knew|remembered} anything, not even {the priest|the mayor|the oldest woman}.",
        ),
        (
            "They {cleaned|washed|dried} it {way} and set it on the {small} bench.",
            "They carried it into the {room}, where {it was warm|the light was better|nobody would see it}.",
        ),
        (
            "{later} {sound} came from the {gate|road|roof}.",
            "{later} {weather}, and they had to go inside.",
        ),
        (
            "In return {friend} brought {food} and {few} young {trees|plants|hens}.",
            "The next year {few} {colour} flowers grew on that spot.",
        ),
    ),
    "the market": (
        (
            "On market day {he} stood behind a {small} table with {bread|fish|cloth|honey|old books}.",
            "{early} {weather}, but the square was full of {people|carts|voices|children}.",
        ),
        (
            "A stranger {stopped|waited} there and wanted to {sell|exchange} a {thing}.",
            "Among the {colour} cups on the next table {he} saw a {thing}.",
        ),
        (
            "It cost {thirty|forty|fifty} coins, and {name} had only {few}.",
            '"Exactly {thirty|forty|fifty} coins," said {the stranger|the old man|the woman}, "and not one less."',
        ),
        (
            "{name} was {mood} and {counted|thought|walked around the square} {way}.",
            "{he} offered {food} instead, but {nobody laughed|the stranger shook his head|it was not enough}.",
        ),
        (
            "Then {friend} came by with {tool} and a {colour} hat.",
            "Then {he} heard {sound}, and {friend} stood beside {him}.",
        ),
        (
            '"I will lend you the rest," said {friend} {way}.',
            '"Look at the bottom," whispered {friend}, and there was a {small} {mark|name|date}.',
        ),
        (
            "So they {shook hands|made the bargain|agreed}, and the {thing} changed its owner.",
            "{later} the {thing} stood in the {room}, and everyone came to see it.",
        ),
        (
            "{Years|Weeks|{few} days} later it turned out to be {worth a fortune|made of gold|quite worthless}.",
            "{friend} never asked for the money and only wanted {food}.",
        ),
    ),
    "the storm": (
        (
            "{later} the sky turned {colour}, and the {fishermen|birds|neighbours} grew {mood}.",
            "For {few} days {weather}, and then the storm came.",
        ),
        (
            "{name} closed the {shutters|doors|windows} {way} and lit a {small} lamp.",
            "The {roof|door|chimney} shook, and from the {room} came {sound}.",
        ),
        (
            "Outside somebody {called|knocked|shouted}, and it was {friend} with a {thing}.",
            "Then {he} saw {friend} on the {road|shore|bridge}, holding a {thing}.",
        ),
        (
            '"{Come in|Quick|Sit down}," said {name}, "there is {food}."',
            "{he} ran out with {tool} and pulled {friend} into the house.",
        ),
        (
            "The water rose {to the steps|by {few} inches|over the wall} and took {the fence|a boat|{few} hens} along.",
            "They sat in the {room} and told each other about their {relative}.",
        ),
        (
            "Towards morning the wind {turned|dropped|was gone}, and {weather}.",
            "{few} hours later there was a {small} strip of light in the east.",
        ),
        (
            "The {thing} was wet but {whole|not broken|still worked}.",
            "They opened the door {way} and found {a fish|sand|{few} planks|a {colour} bird} on the steps.",
        ),
        (
            "Everybody there came together to {mend the roofs|clear the road|count the boats}.",
            "{friend} left the {thing} there {as thanks|for the next storm|and took the road home}.",
        ),
    ),
    "the lesson": (
        (
            "One {winter|summer|Sunday} a child named {friend} came to the door and wanted to learn everything.",
            "{name} had a pupil, {friend}, who was always {mood}.",
        ),
        (
            "{early} {weather}, and {he} began with {tool}.",
            "They began in the {small} {room}, where {food} stood on the stove.",
        ),
        (
            '"First you have to {sweep the floor|listen|wait|sharpen the tools}," said {name}.',
            '"Watch my hands," said {name} and worked {way}.',
        ),
        (
            "{friend} {dropped|spoiled|lost} {few} {pieces|sheets|nails} and was {mood}.",
            "{later} {friend} fell asleep beside a {thing}.",
        ),
        (
            "{he} did not {scold|laugh|say a word} but {began again|made {food}|told a story about {his} {relative}}.",
            '"My {relative} needed {few} years for that," {he} said.',
        ),
        (
            "{later} the child tried it {way}, and the {thing} {moved|sounded|shone|held}.",
            "On the {third|fifth|tenth} day there was {sound}, and the {thing} was finished.",
        ),
        (
            "The {neighbours|parents|others} came and {admired|praised|bought} it.",
            "They painted it {colour} and hung it {over the door|in the {room}|on the wall}.",
        ),
        (
            "Now {friend} works there too and has {few} pupils.",
            "{friend} {left|moved away} later, but every {winter|year} a parcel came with {food}.",
        ),
    ),
}
