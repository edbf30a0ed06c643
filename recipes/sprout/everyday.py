# ruff: noqa: SIM905 (long word lists read better as text)
"""Everyday words and sentence patterns for step 1: greetings, weather, food, family, travel, time.

`{name}` in a pattern stands for one of the slot's values; `sentences.py` adds numbers and dates.
"""

SLOTS: dict[str, list[str]] = {
    "person": (
        "my mother|my father|my sister|my brother|my friend|my son|my daughter|my wife|my husband|"
        "the teacher|the doctor|the old man|the young woman|the girl|the boy|the baby|the driver|"
        "the farmer|the king|the queen|our neighbor|his uncle|her aunt|your cousin|the student|"
        "my grandmother|my grandfather|the police officer|the captain|the nurse|the cook|Anna|"
        "Tom|Mary|John|Peter|Sarah|David|Emma|this man|that woman"
    ).split("|"),
    "people": (
        "the children|my parents|our friends|the students|these people|the boys|the girls|"
        "my brothers|the teachers|the workers|they|we|you|many people|the neighbors|the players"
    ).split("|"),
    "food": (
        "bread|butter|cheese|rice|soup|fish|chicken|meat|an apple|an orange|a banana|cake|"
        "ice cream|a sandwich|breakfast|lunch|dinner|fruit|salad|potatoes|tomatoes|eggs|chocolate|"
        "cookies|pizza|pasta|honey|sugar|salt|beans|carrots|corn|a pear|grapes|some pie"
    ).split("|"),
    "drink": (
        "water|milk|tea|coffee|juice|orange juice|hot chocolate|lemonade|a cup of tea|"
        "a cup of coffee|a glass of water|a glass of milk|a bottle of water|some wine|some beer"
    ).split("|"),
    "animal": (
        "dog|cat|horse|cow|bird|fish|sheep|pig|duck|rabbit|mouse|lion|bear|wolf|fox|monkey|"
        "elephant|tiger|chicken|goat|frog|snake|bee|butterfly|spider"
    ).split("|"),
    "color": "red|blue|green|yellow|white|black|brown|gray|pink|purple|orange|golden".split("|"),
    "object": (
        "book|car|house|door|window|table|chair|bed|lamp|phone|computer|letter|box|bag|hat|coat|"
        "shirt|dress|shoe|key|cup|glass|plate|knife|fork|spoon|bottle|clock|watch|picture|paper|"
        "pen|pencil|ball|bicycle|boat|train|bus|plane|tree|flower|garden|room|wall|floor|street|"
        "bridge|river|mountain|newspaper|umbrella|camera|radio|piano|guitar|ticket|map|candle|"
        "basket|blanket|pillow|mirror|ring|desk|kitchen|roof|rope|wheel|machine|engine|gift"
    ).split("|"),
    "quality": (
        "good|bad|big|small|old|young|new|nice|warm|cold|hot|cool|happy|sad|quiet|loud|fast|slow|"
        "clean|dirty|dark|bright|heavy|light|soft|hard|sweet|strong|weak|tired|ready|late|early|"
        "empty|full|easy|difficult|beautiful|strange|simple|cheap|expensive|free|busy|safe|"
        "dangerous|deep|wide|short|long|tall|wet|dry|rich|poor|hungry|thirsty|angry|kind|funny|"
        "lovely|great|wonderful|terrible|important|interesting|different|famous|fresh|broken|sick"
    ).split("|"),
    "where": (
        "in the kitchen|in the garden|at school|at home|at work|in the city|in the park|"
        "by the river|on the table|under the bed|near the window|behind the house|at the station|"
        "at the market|on the train|on the bus|in the car|in the forest|on the beach|by the sea|"
        "in the street|in the room|in the box|on the floor|at the door|in the water|on the wall|"
        "at the airport|in the hospital|in the library|in the restaurant|at the hotel|on the hill|"
        "in front of the house|next to the bank|across the road|over the bridge|in the village|"
        "in the morning|in the afternoon|in the evening|at night|in the summer|in the winter|"
        "around the corner|up the stairs|outside|inside|here|there|downtown|upstairs"
    ).split("|"),
    "goal": (
        "the park|the school|the store|the station|the beach|the city|the market|the library|"
        "the hospital|the kitchen|the garden|the office|the airport|the river|the museum|the zoo|"
        "the bank|the church|the theater|the restaurant|the lake|the forest|the village|town|"
        "work|bed|the party|the mountains|the farm|the doctor|the hotel|the bus stop"
    ).split("|"),
    "time": (
        "today|tomorrow|yesterday|now|soon|later|tonight|every day|every morning|every week|"
        "this morning|this afternoon|this evening|this week|next week|next month|next year|"
        "on Monday|on Tuesday|on Wednesday|on Thursday|on Friday|on Saturday|on Sunday|again|"
        "after school|after lunch|after dinner|before breakfast|at noon|at night|all day|"
        "in the morning|in the evening|in a minute|in an hour|right now|for a long time|together"
    ).split("|"),
    "past_time": (
        "yesterday|last night|last week|last year|last summer|this morning|two days ago|"
        "a week ago|a long time ago|on Monday|on Friday|on Sunday|in the morning|after lunch"
    ).split("|"),
    "act": (
        "go home|go to {goal}|come with us|help me|help you|wait here|read a book|write a letter|"
        "sing a song|play the piano|play football|play a game|take a walk|take the bus|eat {food}|"
        "drink {drink}|buy a {object}|buy {food}|open the {object}|close the door|"
        "clean the {object}|find the {object}|see the {animal}|watch a movie|watch television|"
        "listen to music|learn English|speak slowly|make dinner|make a cake|cook {food}|"
        "call {person}|visit {person}|meet {person}|ask a question|answer the question|"
        "tell a story|"
        "swim in the lake|run fast|sleep well|stay here|leave now|start again|stop now|"
        "turn on the light|turn off the light|turn left|turn right|sit down|stand up|"
        "look at the {object}|wash the {object}|carry the {object}|bring the {object}|"
        "drive the car|travel by train|work hard|think about it|talk to {person}|dance|rest"
    ).split("|"),
    "did": (
        "went to {goal}|came home|helped {person}|waited for {person}|read a {quality} book|"
        "wrote a letter|sang a song|played a game|took the bus|ate {food}|drank {drink}|"
        "bought a {color} {object}|opened the {object}|closed the {object}|cleaned the {object}|"
        "found the {object}|lost the {object}|saw a {quality} {animal}|watched a movie|"
        "listened to music|made {food}|cooked dinner|called {person}|visited {person}|"
        "met {person}|asked a question|told a {quality} story|swam in the lake|ran to {goal}|"
        "slept well|stayed at home|left early|fell down|sat {where}|stood {where}|walked to {goal}|"
        "gave me a {object}|showed us the {object}|broke the {object}|fixed the {object}|"
        "sold the {object}|forgot the {object}|painted the {object} {color}|laughed|smiled|cried"
    ).split("|"),
    "weather": (
        "sunny|rainy|cloudy|windy|snowy|foggy|warm|cold|hot|cool|very cold|very hot|nice|bad|"
        "beautiful|wonderful|terrible|dry|wet|lovely|stormy|getting better|getting colder"
    ).split("|"),
    "hobby": (
        "reading|swimming|dancing|singing|cooking|running|walking|painting|music|books|football|"
        "tennis|chess|traveling|gardening|fishing|riding horses|playing games|learning languages"
    ).split("|"),
}

PATTERNS = (
    "the weather is {weather} {time}.|it is {weather} {time}.|it will be {weather} {time}.|"
    "it was {weather} {past_time}.|it is raining {where}.|it is snowing {time}.|"
    "the sun is shining {where}.|the wind is {quality} {time}.|the sky is {color}.|"
    "will it rain {time}?|how is the weather {time}?|what a {quality} day!|"
    "I like {food} and {food}.|I want to eat {food}.|I would like {drink}, please.|"
    "do you like {food}?|can I have {drink}?|{person} likes {food} with {drink}.|"
    "the {food} is very {quality}.|we have {food} for dinner.|{person} is cooking {food} {where}.|"
    "please give me {drink}.|would you like some {food}?|I never eat {food} {where}.|"
    "{person} {did} {past_time}.|{person} {did}.|{people} {did}.|I {did} {past_time}.|"
    "we {did} and {did}.|yesterday {person} {did}.|they {did} because it was {weather}.|"
    "{person} is {quality}.|{person} is very {quality} {time}.|"
    "{person} and {person} are {quality}.|"
    "{people} are {where}.|{person} is {where}.|{person} was {where} {past_time}.|"
    "{person} lives {where}.|{person} wants to {act}.|{people} want to {act}.|"
    "I want to {act}.|I want to {act} {time}.|we can {act} {time}.|you should {act}.|"
    "I have to {act} {time}.|let us {act}.|please {act}.|please {act} {time}.|do not {act}.|"
    "can you {act}?|could you please {act}?|will you {act} {time}?|did you {act} {past_time}?|"
    "shall we {act}?|{person} will {act} {time}.|they are going to {act}.|I like to {act}.|"
    "she can {act} and {act}.|he does not want to {act}.|we used to {act} {where}.|"
    "where is the {object}?|where is {person}?|who is {person}?|what is {where}?|"
    "the {object} is {where}.|the {color} {object} is {where}.|there is a {object} {where}.|"
    "there are two {color} birds {where}.|my {object} is {color}.|this {object} is too {quality}.|"
    "that is a {quality} {object}.|I need a new {object}.|is this your {object}?|"
    "whose {object} is this?|how much is the {object}?|the {object} and the {object} are {color}.|"
    "the {animal} is {quality}.|the {color} {animal} is {where}.|a {quality} {animal} ran {where}.|"
    "we saw a {animal} and a {animal}.|{person} has a {color} {animal}.|"
    "the {animal} is sleeping {where}.|the {animal} eats {food}.|do you have a {animal}?|"
    "{person} loves {hobby}.|I enjoy {hobby} and {hobby}.|my favorite color is {color}.|"
    "do you like {hobby}?|{hobby} is {quality}.|we are {quality} and {quality}.|"
    "I am {quality} {time}.|are you {quality}?|why are you so {quality}?|"
    "you look {quality} {time}.|"
    "good morning, {person}.|hello {person}, how are you?|thank you for the {object}.|"
    "thank you for the {food}.|nice to see you {time}.|goodbye, see you {time}.|"
    "{person} says hello.|excuse me, where is {goal}?|how do I get to {goal}?|"
    "we are going to {goal} {time}.|{person} goes to {goal} {time}.|"
    "the way to {goal} is {quality}.|"
    "the bus to {goal} is {quality}.|the road to {goal} is long.|I came from {goal}.|"
    "{person} is {number} years old.|there are {number} {animal}s {where}.|"
    "we have {number} {object}s.|I waited for {number} minutes {where}.|"
    "the {object} costs {number} dollars.|{number} people are {where}.|"
    "{number} and {number} is {number}.|I have one {object} and two {object}s.|"
    "it is {clock}.|what time is it, is it {clock}?|we eat {food} at {clock}.|"
    "{person} comes home at {clock}.|the {object} was {quality} and {quality}.|"
    "when will {person} {act}?|how can I {act}?|why did {person} {act}?|"
    "if it is {weather}, we will {act}.|when I was {quality}, I {did}.|"
    "I think {person} is {quality}.|I know that {person} {did}.|do you know {person}?|"
    "the {quality} {object} is near {goal}.|this is the {quality} {object} of {person}.|"
    "every {animal} needs {food} and {drink}.|{person} put the {object} {where}.|"
    "the {object} fell {where}.|listen to the {animal} {where}.|look at that {color} {object}!"
).split("|")
