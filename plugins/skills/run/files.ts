import { lstat, mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { openConfined } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Workspaces } from '../../files/contract.ts'
import type { Skill, SkillTool } from '../manifest/skill.ts'

/** Where a program finds copies of the files it was given, and where it leaves files for the workspace. */
const GIVEN = 'files'
const OUTPUT = 'output'

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
  /** That of the run. */
  readonly folder: string
  readonly agentId: string
  readonly maxFiles: number
}
/**
 * Puts what the program left in `output` into the workspace, below `skills/<name>`. Their names there. Links are left
 * out, `output` itself too: what they lead to may be a file of the machine.
 */
export async function saveOutput(
  workspaces: Workspaces | undefined,
  { skill, folder, agentId, maxFiles }: Saved,
): Promise<readonly string[]> {
  if (!mayWrite(skill)) return []
  const files = (await filesBelow(folder, OUTPUT)).toSorted()
  if (files.length > maxFiles)
    throw new Refusal(
      'payload_too_large',
      `The skill "${skill.name}" left ${files.length} files, more than plugins.skills.max_output_files (${maxFiles})`,
    )
  const into = required(workspaces)
  const names: string[] = []
  for (const file of files) {
    const name = `skills/${skill.name}/${file.slice(OUTPUT.length + 1)}`
    const handle = await openConfined(folder, file, 'read')
    try {
      into.checkSize(name, (await handle.stat()).size)
      await into.write(agentId, name, await handle.readFile())
    } finally {
      await handle.close()
    }
    names.push(name)
  }
  return names
}
/** Plain files, relative to `root`. The program has ended, so nothing is swapped any more. */
async function filesBelow(root: string, folder: string): Promise<readonly string[]> {
  const facts = await lstat(join(root, folder)).catch(() => undefined /* it removed it */)
  if (!facts?.isDirectory()) return []
  const entries = await readdir(join(root, folder), { withFileTypes: true })
  const found = entries.map((entry): Promise<readonly string[]> | readonly string[] => {
    const name = `${folder}/${entry.name}`
    return entry.isDirectory() ? filesBelow(root, name) : entry.isFile() ? [name] : []
  })
  return (await Promise.all(found)).flat()
}

const mayWrite = ({ permissions }: Skill): boolean => permissions.includes('files:write')
function required(workspaces: Workspaces | undefined): Workspaces {
  if (workspaces) return workspaces
  throw new Refusal('service_unavailable', 'The plugin "files" is not loaded, so there is no workspace')
}
