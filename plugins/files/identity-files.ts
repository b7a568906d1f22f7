/** The files of every new workspace (API facts 2.1), with their initial content. */
export const identityFiles: ReadonlyMap<string, string> = new Map([
  ['SOUL.md', '# Soul\n\nHow this agent thinks, decides and speaks.\n'],
  ['IDENTITY.md', '# Identity\n\nWho this agent is and how it presents itself.\n'],
  ['USER.md', '# User\n\nWhat is known about the people it works for.\n'],
  ['TOOLS.md', '# Tools\n\nNotes on the tools it uses and their quirks here.\n'],
  ['MEMORY.md', '# Memory\n\nWhat is worth keeping for longer than a conversation.\n'],
  ['AGENTS.md', '# Agents\n\nOther agents it works with, and what for.\n'],
  ['BOOTSTRAP.md', '# Bootstrap\n\nWhat to do first in a new workspace.\n'],
  ['HEARTBEAT.md', '# Heartbeat\n\nWhat to look after from time to time.\n'],
])
