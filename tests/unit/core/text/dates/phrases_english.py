"""English statements and the days that they are about, seen from Thursday, 17 August 2023, unless a day is given.

A line is `text | begin..end`, the end excluded and empty where it is open, or `text | -` where the text is left alone.
"""

CLEAR = """
I went to the dentist last Tuesday. | 2023-08-15..2023-08-16
Anna called yesterday | 2023-08-16..2023-08-17
We talked about it the day before yesterday | 2023-08-15..2023-08-16
I met Dana yesterday evening | 2023-08-16..2023-08-17
We watched a film last night | 2023-08-16..2023-08-17
I had porridge this morning. | 2023-08-17..2023-08-18
Today I signed the contract | 2023-08-17..2023-08-18
Tonight we are having pizza | 2023-08-17..2023-08-18
Dinner with Sam tomorrow at 5 | 2023-08-18..2023-08-19
The movers come the day after tomorrow | 2023-08-19..2023-08-20
We moved here two weeks ago | 2023-07-31..2023-08-07
I bought the bike 3 days ago | 2023-08-14..2023-08-15
My brother visited a week ago. | 2023-08-07..2023-08-14
She quit her job a month ago | 2023-07-01..2023-08-01
They divorced two months ago | 2023-06-01..2023-07-01
I broke my arm three years ago. | 2020-01-01..2021-01-01
We adopted the cat a couple of weeks ago | 2023-07-27..2023-08-10
He was here a few days ago | 2023-08-13..2023-08-15
I painted the kitchen two weekends ago | 2023-08-05..2023-08-07
I was in Porto last week | 2023-08-07..2023-08-14
I have a lot to do this week | 2023-08-14..2023-08-21
The review is next week | 2023-08-21..2023-08-28
We finished the roof the week before last | 2023-07-31..2023-08-07
The exam is the week after next | 2023-08-28..2023-09-04
We went camping last weekend | 2023-08-12..2023-08-14
We are hiking this weekend | 2023-08-19..2023-08-21
This weekend: hiking in the Alps | 2023-08-19..2023-08-21
This weekend we went to the lake | 2023-08-12..2023-08-14
The invoice was paid last month | 2023-07-01..2023-08-01
I'm very busy this month | 2023-08-01..2023-09-01
The lease ends next month | 2023-09-01..2023-10-01
Last year I ran a marathon | 2022-01-01..2023-01-01
Our goal this year is to save more | 2023-01-01..2024-01-01
We will renovate next year | 2024-01-01..2025-01-01
Revenue fell last quarter | 2023-04-01..2023-07-01
The launch is planned for next quarter | 2023-10-01..2024-01-01
I'll travel to Japan next spring | 2024-03-01..2024-06-01
We had a garden party last summer | 2022-06-01..2022-09-01
Last winter we skied in Norway | 2022-12-01..2023-03-01
They met last spring | 2023-03-01..2023-06-01
I learned to sail this spring | 2023-03-01..2023-06-01
We'll get married this autumn | 2023-09-01..2023-12-01
I graduated last May | 2023-05-01..2023-06-01
Last December the pipes froze | 2022-12-01..2023-01-01
The conference takes place next January | 2024-01-01..2024-02-01
I have worked at Acme since 2019 | 2019-01-01..
Since 2019 I have been a vegetarian. | 2019-01-01..
She's lived in Bergen since March 2021 | 2021-03-01..
I've been ill since Monday | 2023-08-14..
He has been on leave since last week | 2023-08-07..
We've had a dog since May | 2023-05-01..
I've used a standing desk since 3 July 2022 | 2022-07-03..
It has rained since yesterday | 2023-08-16..
As of 1 June 2023 the office is in Leeds | 2023-06-01..
Starting next Monday I work from home | 2023-08-21..
Starting Monday I work from home | 2023-08-21..
Starting in May we used Postgres | 2023-05-01..
From 1 September 2023 on, Kim leads the team | 2023-09-01..
The new rules apply from 2024 onwards | 2024-01-01..
We got married on 7 May 2023 | 2023-05-07..2023-05-08
We got married on the 7th of May 2023 | 2023-05-07..2023-05-08
We got married on May 7, 2023. | 2023-05-07..2023-05-08
We got married on May 7th, 2023 in Bath | 2023-05-07..2023-05-08
The lease was signed on 2021-11-30. | 2021-11-30..2021-12-01
Deployed 2023-05-07T10:22:01Z by Kim | 2023-05-07..2023-05-08
The lease was signed on 2021/11/30 | 2021-11-30..2021-12-01
Signed on 17/05/2023 | 2023-05-17..2023-05-18
Signed on 05/17/2023 | 2023-05-17..2023-05-18
Signed on 6/6/2023 | 2023-06-06..2023-06-07
Signed on 7.5.2023 | 2023-05-07..2023-05-08
She was born on 12 January 1987. | 1987-01-12..1987-01-13
I was born in 1987 | 1987-01-01..1988-01-01
In 2019 Dana moved to Oslo. | 2019-01-01..2020-01-01
In 2019, people were more patient | 2019-01-01..2020-01-01
In 2019 we bought the house | 2019-01-01..2020-01-01
We bought the house in 2019 and sold it | 2019-01-01..2020-01-01
The company was founded in May 2015 | 2015-05-01..2015-06-01
In March I visited Rome | 2023-03-01..2023-04-01
I visited Rome in March. | 2023-03-01..2023-04-01
I'll visit Rome in March | 2024-03-01..2024-04-01
We are going to Peru in November | 2023-11-01..2023-12-01
The baby is due in October | 2023-10-01..2023-11-01
I met her in June of 2021 | 2021-06-01..2021-07-01
In the summer of 2021 I lived in Lisbon | 2021-06-01..2021-09-01
We opened the shop in autumn 2020 | 2020-09-01..2020-12-01
In the spring I planted tomatoes | 2023-03-01..2023-06-01
Sales doubled in Q3 2022 | 2022-07-01..2022-10-01
I played in a band in the 1990s | 1990-01-01..2000-01-01
She studied physics in the 80s | 1980-01-01..1990-01-01
On Monday I went swimming | 2023-08-14..2023-08-15
On Monday I'll go swimming | 2023-08-21..2023-08-22
I went to the doctor on Friday | 2023-08-11..2023-08-12
I'm going to the doctor on Friday | 2023-08-18..2023-08-19
The meeting is on Tuesday | 2023-08-22..2023-08-23
The shop will be closed on Monday | 2023-08-21..2023-08-22
I have to call the bank on Monday | 2023-08-21..2023-08-22
Call the plumber on Monday | 2023-08-21..2023-08-22
Let's meet on Saturday | 2023-08-19..2023-08-20
I saw Tom on Sunday morning | 2023-08-13..2023-08-14
We should leave on Saturday at 8 | 2023-08-19..2023-08-20
The deadline is this Friday | 2023-08-18..2023-08-19
I talked to him this past Friday | 2023-08-11..2023-08-12
The plumber comes this coming Tuesday | 2023-08-22..2023-08-23
I'm meeting Tom next Monday | 2023-08-21..2023-08-22
I resigned on Tuesday last week | 2023-08-08..2023-08-09
We present on Wednesday next week | 2023-08-23..2023-08-24
Last week on Tuesday the server crashed | 2023-08-08..2023-08-09
The party is on Saturday, 9 September | 2023-09-09..2023-09-10
Dinner on Saturday, September 9th | 2023-09-09..2023-09-10
On 3 May I started a new job | 2023-05-03..2023-05-04
I started a new job on May 3rd | 2023-05-03..2023-05-04
I'll start a new job on May 3rd | 2024-05-03..2024-05-04
The wedding is on 9 September | 2023-09-09..2023-09-10
On Monday, 7 May 2018, we signed | 2018-05-07..2018-05-08
We travelled from 3 to 9 May 2023 | 2023-05-03..2023-05-10
We travelled from 3 May to 9 May | 2023-05-03..2023-05-10
The course ran May 3-9, 2023 | 2023-05-03..2023-05-10
We were in Norway between June and July | 2023-06-01..2023-08-01
I lived in Oslo from 2015 to 2018 | 2015-01-01..2019-01-01
I lived in Oslo between 2015 and 2018. | 2015-01-01..2019-01-01
She was a nurse (2015-2018) | 2015-01-01..2019-01-01
The project ran from June 2021 until August 2022 | 2021-06-01..2022-09-01
I was here until 2019 | 2019-01-01..2020-01-01
The shop is closed until Monday | 2023-08-17 15:30..2023-08-22
I'm on holiday until 3 September 2023 | 2023-08-17 15:30..2023-09-04
I need the report by Monday | 2023-08-21..2023-08-22
In two weeks I'll move to Bath | 2023-08-28..2023-09-04
I'll be back in three days | 2023-08-20..2023-08-21
The exam is two weeks from now | 2023-08-28..2023-09-04
The trial starts in a week's time | 2023-08-21..2023-08-28
I've slept badly for the last two weeks | 2023-08-03..2023-08-18
I lost four kilos in the past three months | 2023-05-17..2023-08-18
Over the next three days it will rain | 2023-08-17..2023-08-21
Late March 2022 I was ill | 2022-03-21..2022-04-01
We moved in early 2020 | 2020-01-01..2020-05-02
The bridge was closed at the end of May 2021 | 2021-05-21..2021-06-01
I changed teams in March last year | 2022-03-01..2022-04-01
In the summer of last year I walked the Camino | 2022-06-01..2022-09-01
I said yesterday that I like tea | 2023-08-16..2023-08-17
Dana: I adopted a puppy last Tuesday! | 2023-08-15..2023-08-16
I quit smoking on 1 January 2020; it was hard. | 2020-01-01..2020-01-02
We broke up in March, and I moved out. | 2023-03-01..2023-04-01
yesterday i finally finished the book | 2023-08-16..2023-08-17
i moved to paris in march | 2023-03-01..2023-04-01
I was at the May Day parade on 1 May 2023 | 2023-05-01..2023-05-02
In the last year I read 30 books | 2022-08-17..2023-08-18
I read a lot in the past week | 2023-08-10..2023-08-18
Anna's birthday party was last Saturday | 2023-08-12..2023-08-13
The user mentioned that last month they argued with Leo | 2023-07-01..2023-08-01
We leave on Monday | 2023-08-21..2023-08-22
See you on Monday! | 2023-08-21..2023-08-22
Had lunch with Mia on Wednesday | 2023-08-16..2023-08-17
My flight leaves on Sunday at 7am | 2023-08-20 07:00..2023-08-20 08:00
User has been learning Italian since January | 2023-01-01..
User plans to visit Tokyo in April | 2024-04-01..2024-05-01
User visited the Louvre on June 3, 2022 with Marco | 2022-06-03..2022-06-04
Project Falcon kicked off in Q1 2024 | 2024-01-01..2024-04-01
TODO: renew passport by March 2025 | 2025-03-01..2025-04-01
May 2019: moved to Paris | 2019-05-01..2019-06-01
I'll call you tomorrow at 3 pm | 2023-08-18 15:00..2023-08-18 16:00
At 3:30 p.m. yesterday I met Bob | 2023-08-16 15:30..2023-08-16 15:31
We met on Monday at 14:30. | 2023-08-14 14:30..2023-08-14 14:31
I woke up at 7 this morning | 2023-08-17 07:00..2023-08-17 08:00
The call was yesterday evening at 8 | 2023-08-16 20:00..2023-08-16 21:00
We talked on Monday at 5 | 2023-08-14..2023-08-15
[2023-05-07] Dana adopted a cat | 2023-05-07..2023-05-08
By 2030 the city wants to be carbon neutral | 2030-01-01..2031-01-01
"""

LEFT_ALONE = """
29 February 2023 was cold
We met on 31 April 2025
I saw Saturday Night Live
I like the song Yesterday
The demo is now, not tomorrow
It was cancelled 3 days before
The week after the wedding we flew home
Two weeks later she called
The following week he quit
I go to yoga every Tuesday
We play tennis on Mondays
Each Friday we order pizza
I usually visit my parents in December
My birthday is on 7 May
My birthday is in March
I have yoga on Tuesday and Thursday
The meeting moved from Tuesday to Thursday
The deadline was changed from 3 May 2023 to 9 May 2023
Not on Monday but on Tuesday
I lived there for two years
It took ten minutes
I finished it in two weeks
She is 12 years old
Python 3.11 is fast
We run MySQL 8.4 and Postgres 16
In 2019 people attended the talk
The talk had 2019 visitors
It costs 2000 dollars
Room 2023 is upstairs
Signed on 05/07/2023
Signed on 5-7-2023
The meeting is at 5 pm
What did we do last Tuesday?
Did you see Anna yesterday?
If it rains on Monday, we will stay home
I would go next year
I wish I had moved in 2019
The novel is set in 1984
He said "I will come tomorrow"
I like the song "Friday I'm in Love"
June is a good friend
April went to the shops
I met April and June
May I ask something
He may come
We march in silence
The fall of Rome
I prefer dark mode
I drink coffee in the morning
I'm free on weekends
I bought it on Black Friday
Robinson met Man Friday
I work from Monday to Friday
The office is closed on Sunday
I moved in 2019 and again in 2021
We met in 2015, married in 2018 and divorced in 2021.
I'm going to the cinema next Friday
The party is next weekend
The last time we met
Last name: Winter
That Friday was terrible
One Friday we got lost
Someday I'll learn Dutch
She reads last month's report
Last year's model is cheaper
I was born in March and raised in Spain before May
She left before March
Since then I am happy
Since you asked, I like tea
I use Spring Boot
The database is in Summer Hall
We decided to meet on Monday
They said they go on Friday
Dana lives in Oslo
I have two kids
On Thursday I went swimming
In August I started a job
Version 2023.1 is out
Call 555-2019 for help
The flight is LH2019
Winter 2022 was cold
I'd like to see Rome in spring
The May release is broken
Week 3 was hard
24/7 support
I read 1984
More than two years ago I moved
Over ten years ago I met him
My phone is 2019-555-0132
I was done by 2019
Imagine that we met in 2010
Windows 2019 is installed
The class of 2019
An hour ago I ate
10 minutes ago he left
Meeting with Bob on Friday
The party is on Monday, 9 September 2023
Dinner on Monday, September 9th
I got the job on the 3rd
I've known her for 10 years
The last week of school was fun
Happy Friday everyone!
School starts the first week of September
"""
