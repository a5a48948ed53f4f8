"""Junk: what is small talk or tool noise, and what only looks like it."""

from __future__ import annotations

import pytest

from recallite.text.junk import is_junk

JUNK = [
    "ok thanks!", "Hello there", "👍", "null", "Process exited with code 0", "Got it.",
    "Thank you so much for your help!", "You're welcome!", "You’re welcome", "Sounds good to me", "Hmmmm", "yesss",
    "Soooo cool", "Good morning everyone!", "Done.", "OK", "[]", "{}", "----------", "=====\n-----\n\n***",
    "Loading...", "Downloading packages... 45%", "45%|████▌     | 45/100 [00:10<00:12,  4.50it/s]",
    "[=====>    ] 50%", "No results found.", "(no output)", "0 matches", '{"status": "ok"}', '{\n  "results": []\n}',
    '{"success": true, "error": null}', "✓ Done", "[INFO] Done", "Step 3/10", "Sure, I can help with that!",
    "Great question!", "Is there anything else I can help you with?", "Let me check.", "Hi! How are you?", "lol",
    "Testing 1 2 3", "Command completed successfully.", "Exit code: 0", "Thinking…", "Working on it...",
    "Tool executed successfully", "200 OK", "I see, that makes sense.", "You're absolutely right!",
    "Bye! See you tomorrow", "Have a great weekend!", '""', "None", "Ok cool, thanks a lot", "No problem at all 😊",
    "...", "<no output>", "nothing to commit", "Yes, please go ahead.", "Perfect, thank you!!",
    "Alright, sounds like a plan.", "Process finished with exit code 0", "Thanks!\nBye",
    "Installing dependencies...\nBuilding...\nDone", "⠋ Loading...",
]  # fmt: skip
FACTS = [
    "No sugar", "Yes to the offer of May", "Thanks, Ada fixed it", "port 8080", "是", "ok, my number is 555 1234",
    "Thanks, Anna!", "Reading Dune...", "No criminal records", "Building a house...", "Yes, I'm vegetarian",
    "No dairy content", "Good morning is my favourite show", "I'm good at chess", "Hi, I'm Anna", "C#", "$5", "42",
    "Not Paris", "ok let's meet at 5", "Bergen", "true love", "Great, it's in Oslo", "I like it hot",
    "See you tomorrow at noon", "I'm here in Berlin", "Thanks for the coffee", "No, the red one",
    "Sure, Friday works", "Yes, twice a week", "Error: file not found: /etc/hosts", "Build failed: missing libfoo",
    "exit code 0 means success", "50%", "Peanuts", "never", "Call me Bob", "Ok, blue", "My bad knee hurts",
    "Done with smoking", "I quit", '{"status": "vegetarian"}', '{"results": ["Ada"]}', "Downloading Ada's photos...",
    "No changes to the plan of May", "Hello World is the name of my cat", "Please call Ada", "It's fine dining",
    "1/2 cup of oats", "| a | b |", "[INFO] disk /dev/sda1 is full", "Thanks!\nMy flight is on Friday",
]  # fmt: skip


@pytest.mark.parametrize("text", JUNK)
def test_small_talk_and_tool_noise_are_junk(text):
    assert is_junk(text)


@pytest.mark.parametrize("text", FACTS)
def test_what_carries_a_fact_is_not_junk(text):
    assert not is_junk(text)


def test_a_long_text_is_not_junk_by_its_length():
    assert is_junk("ok " * 50)
    assert not is_junk("ok " * 200)
    assert is_junk("Loading...\n" * 200)
