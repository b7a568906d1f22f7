import * as v from 'valibot'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool, Hooks, Tools } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import { allowsSkill } from './allowed.ts'
import type { SkillCatalog } from './catalog.ts'
import type { Skill } from './manifest/skill.ts'

export const DESCRIBE = 'skill_describe'
/** Skills that one answer shows at most. */
const MAX_SHOWN = 100
/** More than a tool of a skill may take. */
const EXECUTE_SECS = 140

export interface SkillToolsDeps {
  readonly catalog: () => Promise<SkillCatalog>
  readonly agents: Agents
  readonly hooks: Hooks
  readonly tools: Tools
  readonly readFileBytes: number
}
const skillName = v.pipe(v.string(), v.minLength(1), v.maxLength(64), v.description('As skill_list names it'))

export function skillTools(deps: SkillToolsDeps): readonly AnyTool[] {
  return [listTool(deps), describeTool(deps), readFileTool(deps), executeTool(deps)]
}

/** Those that the agent may use, by name. */
async function skillsOf({ catalog, agents }: SkillToolsDeps, agentId: string): Promise<readonly Skill[]> {
  const { manifest } = await agents.require(agentId)
  return (await catalog()).enabled.filter(({ name }) => allowsSkill(manifest, name))
}
/** Throws `not_found`, also for one that the agent may not use. */
export async function skillOf(deps: SkillToolsDeps, agentId: string, name: string): Promise<Skill> {
  const found = (await skillsOf(deps, agentId)).find((each) => each.name === name)
  if (found) return found
  throw new Refusal('not_found', `You have no skill "${name.slice(0, 64)}". skill_list shows those you have.`)
}

function listTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: 'skill_list',
    risk: 'read',
    description:
      'The skills you have, with what each is for. Answers JSON. With query: those that match all its words.',
    input: v.object({ query: v.optional(v.pipe(v.string(), v.maxLength(256)), '') }),
    async run({ query }, { agentId }) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean)
      const found = (await skillsOf(deps, agentId)).filter(({ name, description, tags }) => {
        const text = [name, description, ...tags].join('\n').toLowerCase()
        return words.every((word) => text.includes(word))
      })
      const skills = found.slice(0, MAX_SHOWN).map(({ name, description }) => ({ name, description }))
      return JSON.stringify({ skills, total: found.length })
    },
  })
}

function describeTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: DESCRIBE,
    risk: 'read',
    description: 'Read a skill: its instructions, its files and its tools. Do this before a task that the skill fits.',
    input: v.object({ name: skillName }),
    async run({ name }, { agentId }) {
      const { describe } = await import('./describe.ts')
      return await describe(await deps.catalog(), await skillOf(deps, agentId, name))
    },
  })
}

function readFileTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: 'skill_read_file',
    risk: 'read',
    description: 'Read a file of a skill, such as a reference that its instructions name.',
    input: v.object({
      skill: skillName,
      path: v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.description('Relative to the folder of the skill')),
    }),
    async run({ skill, path }, { agentId }) {
      const { readText } = await import('./files.ts')
      return await readText(await skillOf(deps, agentId, skill), path, deps.readFileBytes)
    },
  })
}

function executeTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: 'skill_execute',
    risk: 'write',
    labels: ['ExternalNetwork'],
    refuses: ['Secret', 'Pii'],
    timeoutSecs: EXECUTE_SECS,
    description: 'Call a tool of a skill by the names in skill_describe. Each is also a tool of its own.',
    input: v.object({
      skill: skillName,
      tool: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
      input: v.optional(v.record(v.string(), v.unknown()), {}),
    }),
    async run({ skill, tool, input }, call) {
      const { execute } = await import('./execute.ts')
      return await execute(deps, await skillOf(deps, call.agentId, skill), tool, input, call)
    },
  })
}
