import type { Vault } from 'svc/sdk'
import type { BadSkill, SkillCatalog } from './catalog.ts'
import { listFiles } from './files.ts'
import { toolName } from './manifest/skill.ts'
import type { Skill } from './manifest/skill.ts'
import type { Problem, SkillRow } from './schema.ts'
import { showVariables } from './variables.ts'

export function toRow(catalog: SkillCatalog, skill: Skill): SkillRow {
  const { name, version, description, runtime, origin, author, license, tags, tools, text } = skill
  return {
    name,
    version,
    description,
    runtime,
    bundled: origin === 'bundled',
    author,
    license,
    tags: [...tags],
    tools_count: tools.length,
    enabled: catalog.isEnabled(name),
    has_prompt_context: text !== undefined,
    overrides_bundled: origin === 'local' && catalog.isBundled(name),
    source: { type: origin },
  }
}

export async function toDetail(catalog: SkillCatalog, skill: Skill, vault: Vault) {
  const [text, files, variables] = await Promise.all([
    catalog.text(skill),
    listFiles(skill),
    showVariables(vault, skill),
  ])
  return {
    ...toRow(catalog, skill),
    path: skill.folder,
    warnings: [...skill.warnings],
    compatibility: skill.compatibility,
    permissions: [...skill.permissions],
    needs_tools: [...skill.needsTools],
    tools: skill.tools.map(({ name, description, inputSchema }) => ({
      name: toolName(skill.name, name),
      tool: name,
      description,
      input_schema: { ...inputSchema },
    })),
    variables,
    text,
    files: [...files],
  }
}

export function toProblem({ name, folder, problem }: BadSkill): Problem {
  const { file, line = null, key = null, message } = problem
  return { name, path: folder, file, line, key, error: message }
}
