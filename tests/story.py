"""What is said in the sessions that real clients are taken through, and that their recorded payloads replay."""

from __future__ import annotations

from memlane import Bank

HOUSE_RULE = "House rule: the kestrel dashboard is read-only on Fridays."  # pinned: every session starts with it
RELEVANT = "Deploys go out on Tuesdays, after standup."  # too old for the start; only the prompt brings it
FACT = "The staging database is called Heron."  # what the model remembers through the tool
ANSWER = "The next release waits until Imke has tagged the build.\n\nThe rollback script moved to tools/rollback.sh."
SECOND_ANSWER = "Imke tags it; ask her before noon.\n\nThe script needs the name of the release as its only argument."
THIRD_ANSWER = "With two releases on one day, the later one wins.\n\nHer changelog says which one that was."
ANSWERS = (ANSWER, SECOND_ANSWER, THIRD_ANSWER)
PROMPTS = (
    "When do deploys go out?",
    "Who tags the build, and where is the rollback script?",
    "And if there are two releases on one day?",  # asked in the second session, resumed by a new process
)


def fill(bank: Bank) -> None:
    """A bank with something to recall, and enough newer notes to keep the relevant one out of the newest five."""
    bank.add(RELEVANT, title="Deploy day", created_at="2024-01-01")
    bank.add(HOUSE_RULE, title="Fridays", tags=["pinned"], created_at="2024-01-02")
    for day in range(1, 7):
        bank.add(f"Lunch on day {day} was soup.", title=f"Lunch {day}", created_at=f"2025-01-0{day}")
