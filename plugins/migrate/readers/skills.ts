import type { HomeDraft } from '../model.ts'
import { commandLine } from 'svc/sdk'
import type { SourceFolder } from '../source/source-folder.ts'

/** A skill for each folder with a manifest below `below`. */
export async function readSkills(draft: HomeDraft, folder: SourceFolder, below: string): Promise<void> {
  for (const { name, isFolder } of await folder.list(below)) {
    if (!isFolder) continue
    const path = `${below}/${name}`
    const known = draft.skills.some(({ key }) => key === name)
    if (known) draft.leave('skill', path, 'a skill of the same name stands in another folder')
    else if ((await folder.has(`${path}/SKILL.md`)) || (await folder.has(`${path}/skill.toml`)))
      draft.skills.push({ key: name, folder: path })
    else if (await folder.has(`${path}/package.json`))
      draft.leave('skill', path, `it has no SKILL.md: install it anew with ${commandLine('skill install <source>')}`)
  }
}
