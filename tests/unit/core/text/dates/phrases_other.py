"""Statements in other languages, as in `phrases_english.py`, seen from Thursday, 17 August 2023."""

CLEAR = """
Ich war gestern beim Zahnarzt | 2023-08-16..2023-08-17
Gestern Abend haben wir gekocht | 2023-08-16..2023-08-17
Vorgestern rief meine Mutter an | 2023-08-15..2023-08-16
Heute habe ich den Vertrag unterschrieben | 2023-08-17..2023-08-18
Morgen fahre ich nach Köln | 2023-08-18..2023-08-19
Ich fahre morgen früh nach Köln | 2023-08-18..2023-08-19
Übermorgen kommt der Maler | 2023-08-19..2023-08-20
Wir sind vor zwei Wochen umgezogen | 2023-07-31..2023-08-07
Vor 3 Tagen habe ich das Rad gekauft | 2023-08-14..2023-08-15
Vor einem Jahr haben wir uns kennengelernt | 2022-01-01..2023-01-01
Letzten Dienstag hatte ich einen Termin | 2023-08-15..2023-08-16
Letzte Woche war ich in Porto | 2023-08-07..2023-08-14
Nächste Woche fahre ich nach Köln | 2023-08-21..2023-08-28
Kommenden Freitag ist die Feier | 2023-08-18..2023-08-19
Letztes Wochenende waren wir zelten | 2023-08-12..2023-08-14
Am Wochenende waren wir am See | 2023-08-12..2023-08-14
Letzten Monat wurde die Rechnung bezahlt | 2023-07-01..2023-08-01
Letztes Jahr bin ich einen Marathon gelaufen | 2022-01-01..2023-01-01
Nächstes Jahr wollen wir heiraten | 2024-01-01..2025-01-01
Letzten Sommer waren wir in Schweden | 2022-06-01..2022-09-01
Nächsten Frühling reise ich nach Japan | 2024-03-01..2024-06-01
Ich arbeite seit 2019 bei Siemens | 2019-01-01..
Seit März 2021 wohnt sie in Bergen | 2021-03-01..
Seit letzter Woche bin ich krank | 2023-08-07..
Seit Montag bin ich krank | 2023-08-14..
Wir haben am 7. Mai 2023 geheiratet | 2023-05-07..2023-05-08
Der Vertrag wurde am 05.07.2023 unterschrieben | 2023-07-05..2023-07-06
Ich bin am 3. Juni nach Wien geflogen | 2023-06-03..2023-06-04
Im März war ich in Rom | 2023-03-01..2023-04-01
Ich werde im März nach Rom fahren | 2024-03-01..2024-04-01
Die Konferenz findet im November statt | 2023-11-01..2023-12-01
Im März 2022 habe ich angefangen | 2022-03-01..2022-04-01
Im Sommer 2021 habe ich in Lissabon gelebt | 2021-06-01..2021-09-01
Am Freitag gehe ich schwimmen | 2023-08-18..2023-08-19
Am Freitag war ich schwimmen | 2023-08-11..2023-08-12
Zwischen Juni und Juli waren wir in Norwegen | 2023-06-01..2023-08-01
Von 2015 bis 2018 wohnte ich in Ulm | 2015-01-01..2019-01-01
Vom 3. bis 9. Mai 2023 waren wir in Rom | 2023-05-03..2023-05-10
Bis Freitag bin ich im Urlaub | 2023-08-17 15:30..2023-08-19
In den letzten zwei Wochen habe ich schlecht geschlafen | 2023-08-03..2023-08-18
Ende März 2022 war ich krank | 2022-03-21..2022-04-01
Die Firma wurde 2015 gegründet | 2015-01-01..2016-01-01
Im Jahr 2015 zog sie nach Berlin | 2015-01-01..2016-01-01
Ab Montag arbeite ich von zu Hause | 2023-08-21..
Am Montag um 15 Uhr war ich beim Arzt | 2023-08-14 15:00..2023-08-14 16:00
Hier je suis allé chez le dentiste | 2023-08-16..2023-08-17
J'ai vu Dana avant-hier | 2023-08-15..2023-08-16
Demain nous partons à Lyon | 2023-08-18..2023-08-19
Aujourd'hui j'ai signé le contrat | 2023-08-17..2023-08-18
Nous avons déménagé il y a deux semaines | 2023-07-31..2023-08-07
J'ai acheté le vélo il y a 3 jours | 2023-08-14..2023-08-15
Je l'ai rencontrée mardi dernier | 2023-08-15..2023-08-16
La semaine dernière j'étais à Porto | 2023-08-07..2023-08-14
La semaine prochaine je vais à Lyon | 2023-08-21..2023-08-28
Le week-end dernier nous avons campé | 2023-08-12..2023-08-14
La facture a été payée le mois dernier | 2023-07-01..2023-08-01
L'année dernière j'ai couru un marathon | 2022-01-01..2023-01-01
L'année prochaine nous allons nous marier | 2024-01-01..2025-01-01
L'été dernier nous étions en Suède | 2022-06-01..2022-09-01
Je travaille chez Renault depuis 2019 | 2019-01-01..
Elle habite à Bergen depuis mars 2021 | 2021-03-01..
Je suis malade depuis lundi | 2023-08-14..
Nous nous sommes mariés le 7 mai 2023 | 2023-05-07..2023-05-08
Le contrat a été signé le 05/07/2023 | 2023-07-05..2023-07-06
En mars j'ai visité Rome | 2023-03-01..2023-04-01
En mars je vais visiter Rome | 2024-03-01..2024-04-01
L'entreprise a été fondée en 2015 | 2015-01-01..2016-01-01
J'ai commencé en mars 2022 | 2022-03-01..2022-04-01
Hier à 15h30 j'ai vu Dana | 2023-08-16 15:30..2023-08-16 15:31
Ayer fui al dentista | 2023-08-16..2023-08-17
Anteayer llamó mi madre | 2023-08-15..2023-08-16
Anoche vimos una película | 2023-08-16..2023-08-17
Hoy he firmado el contrato | 2023-08-17..2023-08-18
Mañana viajo a Madrid | 2023-08-18..2023-08-19
Nos mudamos hace dos semanas | 2023-07-31..2023-08-07
Compré la bici hace 3 días | 2023-08-14..2023-08-15
El martes pasado fui al médico | 2023-08-15..2023-08-16
La semana pasada estuve en Oporto | 2023-08-07..2023-08-14
La próxima semana voy a Madrid | 2023-08-21..2023-08-28
La semana que viene tengo un examen | 2023-08-21..2023-08-28
El mes pasado se pagó la factura | 2023-07-01..2023-08-01
El año pasado corrí un maratón | 2022-01-01..2023-01-01
El próximo año nos casamos | 2024-01-01..2025-01-01
El verano pasado estuvimos en Suecia | 2022-06-01..2022-09-01
Trabajo en Telefónica desde 2019 | 2019-01-01..
Vive en Bergen desde marzo de 2021 | 2021-03-01..
Estoy enfermo desde el lunes | 2023-08-14..
Nos casamos el 7 de mayo de 2023 | 2023-05-07..2023-05-08
El contrato se firmó el 05/07/2023 | 2023-07-05..2023-07-06
En marzo visité Roma | 2023-03-01..2023-04-01
En marzo voy a visitar Roma | 2024-03-01..2024-04-01
La empresa fue fundada en 2015 | 2015-01-01..2016-01-01
El viernes fui a nadar | 2023-08-11..2023-08-12
Ontem fui ao dentista | 2023-08-16..2023-08-17
Anteontem a minha mãe ligou | 2023-08-15..2023-08-16
Hoje assinei o contrato | 2023-08-17..2023-08-18
Amanhã vou para Lisboa | 2023-08-18..2023-08-19
Mudámos de casa há duas semanas | 2023-07-31..2023-08-07
Comprei a bicicleta 3 dias atrás | 2023-08-14..2023-08-15
Na terça-feira passada fui ao médico | 2023-08-15..2023-08-16
Na semana passada estive no Porto | 2023-08-07..2023-08-14
Na próxima semana vou para Lisboa | 2023-08-21..2023-08-28
No mês passado a fatura foi paga | 2023-07-01..2023-08-01
No ano passado corri uma maratona | 2022-01-01..2023-01-01
No ano que vem vamos casar | 2024-01-01..2025-01-01
No verão passado estivemos na Suécia | 2022-06-01..2022-09-01
Trabalho na Galp desde 2019 | 2019-01-01..
Ela vive em Bergen desde março de 2021 | 2021-03-01..
Casámos em 7 de maio de 2023 | 2023-05-07..2023-05-08
Em março visitei Roma | 2023-03-01..2023-04-01
Em março vou visitar Roma | 2024-03-01..2024-04-01
A empresa foi fundada em 2015 | 2015-01-01..2016-01-01
Ieri sono andato dal dentista | 2023-08-16..2023-08-17
Ieri sera abbiamo cucinato | 2023-08-16..2023-08-17
Oggi ho firmato il contratto | 2023-08-17..2023-08-18
Domani vado a Milano | 2023-08-18..2023-08-19
Dopodomani arriva il pittore | 2023-08-19..2023-08-20
Ci siamo trasferiti due settimane fa | 2023-07-31..2023-08-07
Ho comprato la bici 3 giorni fa | 2023-08-14..2023-08-15
Martedì scorso sono andato dal medico | 2023-08-15..2023-08-16
La settimana scorsa ero a Porto | 2023-08-07..2023-08-14
La prossima settimana vado a Milano | 2023-08-21..2023-08-28
Il mese scorso ho pagato la fattura | 2023-07-01..2023-08-01
L'anno scorso ho corso una maratona | 2022-01-01..2023-01-01
L'anno prossimo ci sposiamo | 2024-01-01..2025-01-01
L'estate scorsa eravamo in Svezia | 2022-06-01..2022-09-01
Lavoro alla Fiat dal 2019 | 2019-01-01..
Ci siamo sposati il 7 maggio 2023 | 2023-05-07..2023-05-08
A marzo ho visitato Roma | 2023-03-01..2023-04-01
A marzo visiterò Roma | 2024-03-01..2024-04-01
L'azienda è stata fondata nel 2015 | 2015-01-01..2016-01-01
Gisteren ben ik naar de tandarts geweest | 2023-08-16..2023-08-17
Eergisteren belde mijn moeder | 2023-08-15..2023-08-16
Vandaag heb ik het contract getekend | 2023-08-17..2023-08-18
Morgen ga ik naar Utrecht | 2023-08-18..2023-08-19
We zijn twee weken geleden verhuisd | 2023-07-31..2023-08-07
Ik heb de fiets 3 dagen geleden gekocht | 2023-08-14..2023-08-15
Afgelopen dinsdag was ik bij de dokter | 2023-08-15..2023-08-16
Vorige week was ik in Porto | 2023-08-07..2023-08-14
Volgende week ga ik naar Utrecht | 2023-08-21..2023-08-28
Vorige maand is de factuur betaald | 2023-07-01..2023-08-01
Vorig jaar heb ik een marathon gelopen | 2022-01-01..2023-01-01
Volgend jaar gaan we trouwen | 2024-01-01..2025-01-01
Afgelopen zomer waren we in Zweden | 2022-06-01..2022-09-01
Ik werk sinds 2019 bij Philips | 2019-01-01..
Ze woont sinds maart 2021 in Bergen | 2021-03-01..
We zijn op 7 mei 2023 getrouwd | 2023-05-07..2023-05-08
In maart heb ik Rome bezocht | 2023-03-01..2023-04-01
In maart ga ik naar Rome | 2024-03-01..2024-04-01
Het bedrijf is opgericht in 2015 | 2015-01-01..2016-01-01
Vrijdag was ik zwemmen | 2023-08-11..2023-08-12
"""

LEFT_ALONE = """
Am Morgen trinke ich Kaffee
Jeden Dienstag gehe ich zum Yoga
Guten Morgen!
Ich habe zwei Jahre dort gewohnt
Mein Geburtstag ist am 7. Mai
Was haben wir letzten Dienstag gemacht?
Wenn es morgen regnet, bleiben wir zu Hause
Das Treffen wurde von Montag auf Dienstag verschoben
Er kaufte 2000 Aktien
In 2019 Fällen war es so
Nächsten Freitag gehen wir ins Kino
Drei Tage vor der Hochzeit war ich krank
Ich mag den Herbst
Im Sommer esse ich Eis
Montags habe ich frei
Heutzutage ist das anders
Ich bin hier
Chaque mardi je vais au yoga
J'ai habité là pendant deux ans
Mon anniversaire est le 7 mai
Qu'avons-nous fait mardi dernier ?
S'il pleut demain, nous restons à la maison
J'aime l'été
La planète Mars est rouge
Trois jours avant le mariage j'étais malade
Les lundis je suis libre
Je l'ai fini en deux semaines
Todos los martes voy a yoga
Viví allí dos años
Mi cumpleaños es el 7 de mayo
¿Qué hicimos el martes pasado?
Si llueve mañana, nos quedamos en casa
Por la mañana tomo café
Trabajo desde hace dos años
Me gusta el verano
Todas as terças vou ao ioga
Vivi lá dois anos
O meu aniversário é em 7 de maio
De manhã bebo café
Gosto do verão
Ogni martedì vado a yoga
Ho vissuto lì per due anni
Il mio compleanno è il 7 maggio
Se domani piove, restiamo a casa
Mi piace l'estate
Il lunedì sono libero
Elke dinsdag ga ik naar yoga
Ik heb daar twee jaar gewoond
Mijn verjaardag is op 7 mei
Als het morgen regent, blijven we thuis
Goede morgen!
Ik hou van de zomer
Volgende vrijdag gaan we naar de film
"""
