import { editManifest } from './manifest.ts'

export interface CloneOptions {
  /** `<name>-clone`, or the next free one, when absent. */
  readonly name?: string | undefined
  readonly skills: boolean
  readonly tools: boolean
  /** Given by a caller who may have to repeat the request. */
  readonly id?: string | undefined
}

const NAME_CHARS = 256

/**
 * The first free name of `<name>-clone`, `<name>-clone-2`, … Two clones at the same time may still pick the same one.
 */
export async function cloneName(name: string, taken: (name: string) => Promise<boolean>): Promise<string> {
  for (let count = 1; ; count++) {
    const end = count === 1 ? '-clone' : `-clone-${count}`
    const candidate = `${[...name]
      .slice(0, NAME_CHARS - end.length)
      .join('')
      .slice(0, NAME_CHARS - end.length)
      .trimEnd()}${end}`
    if (!(await taken(candidate))) return candidate
  }
}

export function cloneManifest(toml: string, name: string, { skills, tools }: CloneOptions): string {
  return editManifest(toml, {
    name,
    ...(skills ? {} : { skills: [], skills_disabled: true }),
    ...(tools ? {} : { 'capabilities.tools': [], tool_allowlist: [], tool_blocklist: [] }),
  })
}
