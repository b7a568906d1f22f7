import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest, PluginTestOptions } from 'svc/testing'
import { root } from '../../architecture/sources.ts'
import { turnPlugins } from '../plugin-test.ts'

/** A daemon with what skills need. */
export const startSkills = (options: Partial<PluginTestOptions> = {}): Promise<PluginTest> =>
  startPlugin({
    plugin: join(root, 'plugins/skills'),
    builtIns: [...turnPlugins, 'files', 'wasm', 'approvals', 'system'],
    ...options,
  })

/** A `SKILL.md`. */
export const skillText = (name: string, description = `Helps with ${name}.`, body = `# ${name}\n`): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\n${body}`

/** Writes a skill into the home of a daemon; the keys are names of files. */
export async function writeSkill(
  { home }: Pick<PluginTest, 'home'>,
  name: string,
  files: Readonly<Record<string, string | Uint8Array>> = { 'SKILL.md': skillText(name) },
): Promise<string> {
  const folder = join(home, 'skills', name)
  for (const [file, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), content)
  }
  return folder
}
export const removeSkill = ({ home }: Pick<PluginTest, 'home'>, name: string): Promise<void> =>
  rm(join(home, 'skills', name), { recursive: true })
