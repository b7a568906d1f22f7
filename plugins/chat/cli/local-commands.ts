/** Commands that are carried out here; the daemon knows the others. */
export const localCommands: readonly (readonly [command: string, meaning: string])[] = [
  ['/agent <name>', 'talk to another one'],
  ['/details [id]', 'all about what waits for approval'],
  ['/thoughts', 'what the model thought before its last answer'],
  ['/exit', 'leave'],
]
