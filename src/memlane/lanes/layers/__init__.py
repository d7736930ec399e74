"""The layers lane (seed 004): memory files per project, skill, command and agent, and how they age."""
