import type { Kind, SourceType } from './kinds.ts'
import type { Block } from '../sessions/contract.ts'

export type { Kind, SourceType } from './kinds.ts'

/** Something that stays behind, and why. `name` is that of the file, or of the thing in it. */
export interface LeftBehind {
  readonly kind: Kind
  readonly name: string
  readonly reason: string
}

/** A home of another system, in the terms of this one. Keys are those of the source: the same at every reading. */
export interface SourceHome {
  readonly type: SourceType
  readonly path: string
  /** Of the format, in words; such as `openclaw.json` or `config.yaml`. */
  readonly version: string
  readonly agents: readonly SourceAgent[]
  readonly skills: readonly SourceSkill[]
  readonly sessions: readonly SourceSession[]
  readonly memories: readonly SourceMemory[]
  readonly values: readonly SourceValue[]
  readonly keys: readonly SourceKey[]
  readonly channels: readonly SourceChannel[]
  readonly workflows: readonly SourceWorkflow[]
  readonly jobs: readonly SourceJob[]
  readonly triggers: readonly SourceTrigger[]
  /** Keys of the configuration here, as `svc config set` takes them. */
  readonly settings: readonly { readonly key: string; readonly value: string | number | boolean }[]
  readonly left: readonly LeftBehind[]
  readonly warnings: readonly string[]
  /** Hides the secrets of this home in a text. */
  hide(text: string): string
}
export interface SourceAgent {
  /** The id, by which sessions, jobs and triggers name it. */
  readonly key: string
  readonly name: string
  readonly format: 'json5' | 'yaml' | 'toml' | 'database'
  /** The manifest here, without the name. */
  readonly manifest: Readonly<Record<string, unknown>>
  /** A folder of the source with the files of its workspace. */
  readonly workspace: string | undefined
  readonly warnings: readonly string[]
}
export interface SourceSkill {
  readonly key: string
  /** A folder of the source. */
  readonly folder: string
}
export interface SourceSession {
  readonly key: string
  readonly agent: string
  readonly label: string | undefined
  /** Reads it; only then is its text in memory. Throws with a reason. */
  read(): Promise<Transcript>
}
export interface Transcript {
  /** ISO 8601 UTC. */
  readonly createdAt: string
  readonly messages: readonly SourceMessage[]
  readonly warnings: readonly string[]
}
export interface SourceMessage {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly blocks: readonly Block[]
  /** ISO 8601 UTC. */
  readonly at: string
}
export interface SourceMemory {
  readonly key: string
  readonly agent: string
  readonly content: string
  /** 0 to 1. */
  readonly confidence: number
  readonly category: string | undefined
  /** Of the source, for people. */
  readonly file: string
}
/** A key of a provider of models. */
export interface SourceKey {
  /** The provider as here, or the variable that it is in. */
  readonly provider: string | undefined
  readonly variable: string | undefined
  /** Never in a report, a message or a log. */
  readonly value: string
}
/** A value that an agent keeps under a key. */
export interface SourceValue {
  readonly agent: string
  readonly key: string
  /** JSON. */
  readonly value: unknown
}
export interface SourceChannel {
  /** As here, such as `telegram`. */
  readonly channel: string
  readonly account: string
  /** As `POST /api/channels/{name}/configure` takes them, with secrets. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly agent: string | undefined
}
export interface SourceWorkflow {
  readonly key: string
  readonly name: string
  readonly definition: unknown
}
export interface SourceJob {
  readonly key: string
  readonly name: string
  readonly agent: string | undefined
  /** As `POST /api/cron/jobs` takes it, without agent and delivery. */
  readonly body: Readonly<Record<string, unknown>>
  readonly warnings: readonly string[]
}
export interface SourceTrigger {
  readonly key: string
  readonly agent: string
  /** As `POST /api/triggers` takes it, without agents. */
  readonly body: Readonly<Record<string, unknown>>
}

/** What a reader puts together. */
export class HomeDraft {
  readonly agents: SourceAgent[] = []
  readonly skills: SourceSkill[] = []
  readonly sessions: SourceSession[] = []
  readonly memories: SourceMemory[] = []
  readonly values: SourceValue[] = []
  readonly keys: SourceKey[] = []
  readonly channels: SourceChannel[] = []
  readonly workflows: SourceWorkflow[] = []
  readonly jobs: SourceJob[] = []
  readonly triggers: SourceTrigger[] = []
  readonly settings: { readonly key: string; readonly value: string | number | boolean }[] = []
  readonly left: LeftBehind[] = []
  readonly warnings: string[] = []
  readonly #memoryKeys = new Set<string>()
  readonly #maxMemories: number
  #isFull = false
  constructor({ maxMemories }: { readonly maxMemories: number }) {
    this.#maxMemories = maxMemories
  }

  /** What is there twice is one memory. `false`: there are too many, and no more come over. */
  remember(memory: SourceMemory): boolean {
    if (this.#memoryKeys.has(memory.key)) return true
    if (this.memories.length < this.#maxMemories) {
      this.#memoryKeys.add(memory.key)
      this.memories.push(memory)
      return true
    }
    if (!this.#isFull)
      this.leave('memory', 'memories', `there are more than ${this.#maxMemories}: raise plugins.migrate.max_memories`)
    this.#isFull = true
    return false
  }
  leave(kind: Kind, name: string, reason: string): void {
    this.left.push({ kind, name, reason })
  }
}
