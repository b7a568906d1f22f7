import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scanText } from '../../../plugins/skills/install/scan.ts'
import { readSkill } from '../../../plugins/skills/manifest/read.ts'
import { root } from '../../architecture/sources.ts'

const folder = join(root, 'skills')
const names = readdirSync(folder).toSorted()

/** Lines of a `SKILL.md`: shorter says nothing an agent does not know, longer fills its window. */
const LINES = { min: 60, max: 200 }
/** All of them stand in the prompt of an agent that may use skills. */
const MAX_DESCRIPTION = 160

it('the sixty are all readable, say when to use them in one line, and are neither short nor long', async () => {
  expect(names.length).toBeGreaterThanOrEqual(60)
  for (const name of names) {
    const skill = await readSkill(join(folder, name), name)
    const text = readFileSync(join(folder, name, 'SKILL.md'), 'utf8')
    const lines = text.trimEnd().split('\n').length
    expect.soft({ name, lines, inRange: lines >= LINES.min && lines <= LINES.max }).toMatchObject({ inRange: true })
    expect.soft(skill.description.length, name).toBeLessThanOrEqual(MAX_DESCRIPTION)
    expect.soft(skill.license, name).toBe('MIT')
    expect.soft(skill.tags.length, name).toBeGreaterThanOrEqual(2)
    const refused = scanText(name, text).filter(({ severity }) => severity === 'critical')
    expect.soft(refused, name).toEqual([])
  }
})
