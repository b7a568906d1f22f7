/** A program that answers one prompt and says so in lines of JSON. One more is one more row. */
export interface ProgramRow {
  readonly name: string
  readonly title: string
  readonly command: string
  /** How a person gets it, and signs in with it. */
  readonly install: string
  readonly signIn: string
  /** `default`: what the program itself is set to. */
  readonly defaultModel: string
  /**
   * One answer to what is on its standard input, in lines of JSON, with as little of its own tools, settings and
   * memory as it can be told.
   */
  readonly args: readonly string[]
  /** After everything else. */
  readonly last?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /**
   * How the instructions are handed over: a file named after a flag or in a variable. Absent: they begin the prompt.
   */
  readonly instructions?: { readonly flag: string } | { readonly variable: string }
  /** Settings that go before the user's, in a file that this variable names. */
  readonly settings?: { readonly variable: string; readonly content: object }
  readonly lines: 'claude' | 'codex' | 'gemini'
  /** What was cached is counted beside the input and not in it. */
  readonly cachedApart?: true
}

export const programs: readonly ProgramRow[] = [
  // Source: https://code.claude.com/docs/en/cli-reference, https://code.claude.com/docs/en/headless
  {
    name: 'claude-code',
    title: 'Claude Code',
    command: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    signIn: 'claude',
    defaultModel: 'sonnet',
    lines: 'claude',
    cachedApart: true,
    args: [
      '-p',
      '--output-format',
      'stream-json',
      '--verbose',
      '--include-partial-messages',
      '--no-session-persistence',
      '--setting-sources',
      '',
      '--strict-mcp-config',
      '--disable-slash-commands',
      '--tools',
      '',
    ],
    env: { DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    instructions: { flag: '--system-prompt-file' },
  },
  // Its shell cannot be taken away by a flag that all versions know: it is switched off as a feature and, where that
  // is not known, reads only. Source: https://developers.openai.com/codex/noninteractive
  {
    name: 'codex-cli',
    title: 'Codex CLI',
    command: 'codex',
    install: 'npm install -g @openai/codex',
    signIn: 'codex login',
    defaultModel: 'default',
    lines: 'codex',
    args: [
      'exec',
      '--json',
      '--skip-git-repo-check',
      '--ephemeral',
      '--ignore-user-config',
      '--ignore-rules',
      '--color',
      'never',
      '--sandbox',
      'read-only',
      '-c',
      'features.shell_tool=false',
      '-c',
      'features.unified_exec=false',
    ],
    last: ['-'],
  },
  // Source: https://geminicli.com/docs/cli/headless, https://geminicli.com/docs/reference/configuration
  {
    name: 'gemini-cli',
    title: 'Gemini CLI',
    command: 'gemini',
    install: 'npm install -g @google/gemini-cli',
    signIn: 'gemini',
    defaultModel: 'default',
    lines: 'gemini',
    args: [
      '--output-format',
      'stream-json',
      '--approval-mode',
      'default',
      '--extensions',
      'none',
      '--allowed-mcp-server-names',
      'none',
    ],
    instructions: { variable: 'GEMINI_SYSTEM_MD' },
    settings: {
      variable: 'GEMINI_CLI_SYSTEM_SETTINGS_PATH',
      content: {
        tools: { core: ['none'] },
        security: { folderTrust: { enabled: false } },
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
      },
    },
  },
  // Source: https://qwenlm.github.io/qwen-code-docs/en/users/features/headless
  {
    name: 'qwen-code',
    title: 'Qwen Code',
    command: 'qwen',
    install: 'npm install -g @qwen-code/qwen-code',
    signIn: 'qwen',
    defaultModel: 'default',
    lines: 'claude',
    args: [
      '--output-format',
      'stream-json',
      '--include-partial-messages',
      '--approval-mode',
      'default',
      '--chat-recording=false',
      '--core-tools',
      'none',
      '--extensions',
      'none',
      '--allowed-mcp-server-names',
      'none',
    ],
  },
]
