/** What the terminal of this process can do. */
export interface TerminalMode {
  /** Output can be drawn: it goes to a terminal that knows how to move the cursor. */
  readonly canDraw: boolean
  /** A person can type lines. */
  readonly canType: boolean
  readonly colored: boolean
}

export function terminalMode(): TerminalMode {
  const canDraw = process.stdout.isTTY === true && process.env['TERM'] !== 'dumb'
  return { canDraw, canType: canDraw && process.stdin.isTTY === true, colored: canDraw && !process.env['NO_COLOR'] }
}
