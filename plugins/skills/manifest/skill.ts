/** What runs the tools of a skill; `prompt_only` has none. */
export const runtimes = ['prompt_only', 'python', 'node', 'wasm', 'shell'] as const
export type Runtime = (typeof runtimes)[number]
/** Packages of svc that a program of Node may import: those that the skills which come with svc need. */
export const offeredPackages = ['js-yaml', 'unpdf'] as const
/** Where a skill lies: with svc, or in `<home>/skills`. */
export type Origin = 'bundled' | 'local'

export interface SkillTool {
  /** As its skill names it; agents call it by `toolName`. */
  readonly name: string
  readonly description: string
  /** JSON Schema of its arguments: an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** Arguments that name a file of the agent's workspace, which the tool gets a copy of. */
  readonly files: readonly string[]
}
/** A variable of the environment of its tools. */
export interface SkillVariable {
  readonly name: string
  readonly description: string
  /** The variable of the daemon that it is read from. */
  readonly env: string
  readonly default: string | undefined
  readonly required: boolean
}
/** What the files of a skill say of it. Its text is read when somebody asks for it. */
export interface SkillManifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly author: string
  readonly license: string
  readonly compatibility: string
  readonly tags: readonly string[]
  readonly runtime: Runtime
  /** The file that runs, relative to the folder; empty without a runtime. */
  readonly entry: string
  /** Of `offeredPackages`. */
  readonly packages: readonly string[]
  readonly tools: readonly SkillTool[]
  readonly variables: readonly SkillVariable[]
  /** What its tools may use beside their arguments: `network:<host>`, `files:read`, `files:write`, `env:<NAME>`. */
  readonly permissions: readonly string[]
  /** Tools of the daemon that its text speaks of. */
  readonly needsTools: readonly string[]
  /** Of its files: what has no effect, with its place. */
  readonly warnings: readonly string[]
  /** The file that holds its text for the model, and from which offset on; `undefined` when it has none. */
  readonly text: { readonly file: string; readonly from: number } | { readonly inline: string } | undefined
}
export interface Skill extends SkillManifest {
  readonly origin: Origin
  /** Absolute. */
  readonly folder: string
}

/** 1 to 64 of a-z, 0-9, `-` and `_`, as the name of its folder. */
export const SKILL_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** The name that agents call a tool of a skill by. */
export const toolName = (skill: string, tool: string): string => `skill_${skill}_${tool}`.replaceAll('-', '_')

/** Why a skill cannot be used, with the place in its files. */
export class SkillProblem extends Error {
  override readonly name = 'SkillProblem'
  /** Relative to the folder of the skill. */
  readonly file: string
  /** The first line is 1. */
  readonly line: number | undefined
  readonly key: string | undefined
  readonly reason: string
  constructor(
    place: { readonly file: string; readonly line?: number | undefined; readonly key?: string },
    reason: string,
  ) {
    const { file, line, key } = place
    super([line === undefined ? file : `${file}:${line}`, key, reason].filter((part) => part !== undefined).join(': '))
    this.file = file
    this.line = line
    this.key = key
    this.reason = reason
  }
}
