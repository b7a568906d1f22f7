/** Something that goes on while daemons fail, and knows afterwards what has to be there. */
export interface Load {
  /** Makes what a round needs, while everything works. */
  prepare(round: number): Promise<void>
  /** Works until the signal. */
  run(round: number, signal: AbortSignal): Promise<void>
  /** Once everything works again: waits for what is on its way, and says what is lost, or was done twice. */
  check(round: number): Promise<readonly string[]>
  /** For people: counts over all rounds. */
  readonly figures: Readonly<Record<string, number>>
}

/** The body that makes an agent of the fake model. */
export function agentOf(name: string, { model = 'fake-1', resources = '' } = {}): object {
  return {
    manifest_toml: `name = "${name}"
[model]
provider = "openai"
model = "${model}"
max_tokens = 20
[capabilities]
tools = ["mark"]
[resources]
${resources}
`,
  }
}

/** Milliseconds for what is on its way when everything works again. */
export const SETTLES_MS = 90_000
