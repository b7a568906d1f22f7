/** API facts 2.10: what skills of other systems call the tools of the daemon. */
const names: Readonly<Record<string, string>> = {
  Read: 'file_read',
  read_file: 'file_read',
  Write: 'file_write',
  Edit: 'file_write',
  write_file: 'file_write',
  Glob: 'file_list',
  Grep: 'file_list',
  list_files: 'file_list',
  ls: 'file_list',
  Bash: 'shell_exec',
  exec: 'shell_exec',
  execute_command: 'shell_exec',
  WebSearch: 'web_search',
  WebFetch: 'web_fetch',
  fetch_url: 'web_fetch',
  memory_search: 'memory_recall',
  memory_save: 'memory_store',
  sessions_send: 'agent_send',
  agent_message: 'agent_send',
  sessions_list: 'agent_list',
}
/** In a text these are more often commands of a shell. */
const commands: ReadonlySet<string> = new Set(['ls', 'exec'])

export interface Translation {
  readonly from: string
  readonly to: string
}

/** Translates names, and keeps which were. */
export class ToolNames {
  readonly #used = new Map<string, string>()

  get translations(): readonly Translation[] {
    return [...this.#used].map(([from, to]) => ({ from, to }))
  }
  /** A name as the daemon has it; one that is unknown stays. Arguments such as those of `Bash(git:*)` are left out. */
  translate(name: string): string {
    const bare = name.replace(/\(.*$/, '')
    const to = Object.hasOwn(names, bare) ? names[bare] : undefined
    if (to === undefined) return bare
    this.#used.set(bare, to)
    return to
  }
  /**
   * Decision: in a text only a name alone between backquotes is one of a tool, because most of these names are words
   * and commands as well.
   */
  inText(text: string): string {
    return text.replace(/(?<!`)`([A-Za-z_]+)`(?!`)/g, (whole, name: string) =>
      Object.hasOwn(names, name) && !commands.has(name) ? `\`${this.translate(name)}\`` : whole,
    )
  }
}
