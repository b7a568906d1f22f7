import type { SkillCatalog } from './catalog.ts'
import { listFiles } from './files.ts'
import { toolName } from './manifest/skill.ts'
import type { Skill } from './manifest/skill.ts'

/** What a model reads of a skill: its text, then its files, its tools and the tools that it speaks of. */
export async function describe(catalog: SkillCatalog, skill: Skill): Promise<string> {
  const [text, files] = await Promise.all([catalog.text(skill), listFiles(skill)])
  const { name, description, compatibility, tools, needsTools } = skill
  return [
    text === '' ? `# ${name}\n\n${description}` : text,
    compatibility === '' ? '' : `Needs: ${compatibility}`,
    files.length === 0 ? '' : list('Files, for skill_read_file:', files),
    tools.length === 0
      ? ''
      : list(
          'Tools of this skill:',
          tools.map((tool) => `${toolName(name, tool.name)}: ${tool.description}`),
        ),
    needsTools.length === 0 ? '' : `It speaks of these tools: ${needsTools.join(', ')}`,
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}
const list = (head: string, lines: readonly string[]): string => [head, ...lines.map((each) => `- ${each}`)].join('\n')
