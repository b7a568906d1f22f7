import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkFileName } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Skills } from '../../skills/contract.ts'
import type { SourceFolder } from '../source/source-folder.ts'
import type { Run } from './run.ts'

export interface SkillImportDeps {
  readonly skills: Skills | undefined
  readonly folder: SourceFolder
  /** Where copies are made, which are removed. */
  readonly scratchDir: string
}
const MAX_FILES = 1_000
const MAX_DEPTH = 8

/** Installs the skills, scanned as every other; one that asks for permissions stays behind until they are accepted. */
export async function importSkills(run: Run, deps: SkillImportDeps): Promise<void> {
  const { skills } = deps
  for (const { key, folder } of run.home.skills)
    await run.attempt('skill', key, async () => {
      if (!skills) return run.leave('skill', key, 'the plugin "skills" is not loaded')
      if ((await run.before('skill', key, key)) !== undefined) return
      const wasBegun = await run.wasBegun('skill', key)
      if (!wasBegun && (await skills.list()).some(({ name }) => name === key))
        return run.leave('skill', key, 'there is a skill of this name')
      // What is installed is what was read here, whatever the folder holds by then.
      const copy = join(deps.scratchDir, `migrate-skill-${run.itemId('skill', key)}`)
      try {
        await copySkill(deps.folder, folder, copy)
        const { name } = await install(skills, copy, { name: key, isCheck: true, wasBegun })
        if (!run.isDryRun) {
          await run.begin('skill', key, key)
          await install(skills, copy, { name, isCheck: false, wasBegun })
          await run.keep('skill', key, key, name)
        }
        run.made('skill', key, name)
      } finally {
        await rm(copy, { recursive: true, force: true })
      }
    })
}

/** One that is there already was installed by the run that began it. */
async function install(
  skills: Skills,
  folder: string,
  { name, isCheck, wasBegun }: { readonly name: string; readonly isCheck: boolean; readonly wasBegun: boolean },
): Promise<{ readonly name: string }> {
  try {
    return await skills.install(folder, { isCheck })
  } catch (error) {
    const isThere =
      error instanceof Refusal && error.code === 'conflict' && error.details?.['permissions'] === undefined
    if (wasBegun && isThere) return { name }
    throw error
  }
}

async function copySkill(source: SourceFolder, folder: string, to: string): Promise<void> {
  let count = 0
  const walk = async (below: string, depth: number): Promise<void> => {
    for (const { name, isFolder } of await source.list(below === '' ? folder : `${folder}/${below}`)) {
      const inside = below === '' ? name : `${below}/${name}`
      if (isFolder && depth < MAX_DEPTH) await walk(inside, depth + 1)
      if (isFolder || ++count > MAX_FILES) continue
      const bytes = await source.bytes(`${folder}/${inside}`)
      if (!bytes) continue
      const path = join(to, ...checkFileName(inside))
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await writeFile(path, bytes, { mode: 0o600, flag: 'wx' })
    }
  }
  await rm(to, { recursive: true, force: true })
  await mkdir(to, { recursive: true, mode: 0o700 })
  await walk('', 1)
}
