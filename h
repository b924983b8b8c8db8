player 0 of 3 begins
keep: quern_netplay_advance: the other players have dropped player 0 after a silence: create a world without entities and join (quern_netplay_def.joins)
