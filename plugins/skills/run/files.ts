import { lstat, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { Refusal } from 'svc/sdk'
import type { Workspaces } from '../../files/contract.ts'
import type { Skill, SkillTool } from '../manifest/skill.ts'

/** Where a program finds copies of the files it was given, and where it leaves files for the workspace. */
const GIVEN = 'files'
export const OUTPUT = 'output'

interface Taken {
  readonly skill: Skill
  readonly tool: SkillTool
  readonly input: Readonly<Record<string, unknown>>
  readonly folder: string
  readonly agentId: string
}
/**
 * Copies the files of the workspace that the arguments name into the folder of the run. The arguments with the names of
 * the copies. Throws what `Workspaces.read` throws.
 */
export async function takeFiles(
  workspaces: Workspaces | undefined,
  { skill, tool, input, folder, agentId }: Taken,
): Promise<Readonly<Record<string, unknown>>> {
  if (mayWrite(skill)) await mkdir(join(folder, OUTPUT), { recursive: true })
  if (tool.files.length === 0) return input
  await mkdir(join(folder, GIVEN), { recursive: true })
  let count = 0
  const take = async (name: string): Promise<string> => {
    const bytes = await required(workspaces).read(agentId, name)
    const copy = join(GIVEN, `${++count}-${basename(name)}`)
    await writeFile(join(folder, copy), bytes, { mode: 0o600 })
    return copy
  }
  const given: Record<string, unknown> = { ...input }
  for (const key of tool.files) {
    const value = input[key]
    if (typeof value === 'string') given[key] = await take(value)
    else if (Array.isArray(value)) {
      const copies: unknown[] = []
      for (const each of value) copies.push(typeof each === 'string' ? await take(each) : each)
      given[key] = copies
    }
  }
  return given
}

interface Saved {
  readonly skill: Skill
  readonly folder: string
  readonly agentId: string
  readonly maxFiles: number
}
/** Puts what the program left in `output` into the workspace, below `skills/<name>`. Their names there. */
export async function saveOutput(
  workspaces: Workspaces | undefined,
  { skill, folder, agentId, maxFiles }: Saved,
): Promise<readonly string[]> {
  if (!mayWrite(skill)) return []
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [] /* it removed it */)
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  if (files.length > maxFiles)
    throw new Refusal(
      'payload_too_large',
      `The skill "${skill.name}" left ${files.length} files, more than plugins.skills.max_output_files (${maxFiles})`,
    )
  const names: string[] = []
  for (const file of files.toSorted()) {
    // The program has ended, so nothing swaps the file for a link any more.
    if (!(await lstat(file)).isFile()) continue
    const name = `skills/${skill.name}/${relative(folder, file).replaceAll('\\', '/')}`
    await required(workspaces).write(agentId, name, await readFile(file))
    names.push(name)
  }
  return names
}

const mayWrite = ({ permissions }: Skill): boolean => permissions.includes('files:write')
function required(workspaces: Workspaces | undefined): Workspaces {
  if (workspaces) return workspaces
  throw new Refusal('service_unavailable', 'The plugin "files" is not loaded, so there is no workspace')
}
