import { Refusal } from 'svc/sdk'
import type { ToolAnswer, ToolCallContext } from 'svc/sdk'
import { allowsSkill } from './allowed.ts'
import { describe } from './describe.ts'
import { execute } from './execute.ts'
import { readText } from './files.ts'
import type { Skill } from './manifest/skill.ts'
import type { SkillToolsDeps } from './tools.ts'

/** Skills that one answer shows at most. */
const MAX_SHOWN = 100

/** Those that the agent may use, by name. */
async function skillsOf({ catalog, agents }: SkillToolsDeps, agentId: string): Promise<readonly Skill[]> {
  const { manifest } = await agents.require(agentId)
  return (await catalog()).enabled.filter(({ name }) => allowsSkill(manifest, name))
}
/** Throws `not_found`, also for one that the agent may not use. */
async function skillOf(deps: SkillToolsDeps, agentId: string, name: string): Promise<Skill> {
  const found = (await skillsOf(deps, agentId)).find((each) => each.name === name)
  if (found) return found
  throw new Refusal('not_found', `You have no skill "${name.slice(0, 64)}". skill_list shows those you have.`)
}

/** As JSON: those whose name, description or tags hold all words of the query. */
export async function listSkills(deps: SkillToolsDeps, agentId: string, query: string): Promise<string> {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const found = (await skillsOf(deps, agentId)).filter(({ name, description, tags }) => {
    const text = [name, description, ...tags].join('\n').toLowerCase()
    return words.every((word) => text.includes(word))
  })
  const skills = found.slice(0, MAX_SHOWN).map(({ name, description }) => ({ name, description }))
  return JSON.stringify({ skills, total: found.length })
}

export async function describeSkill(deps: SkillToolsDeps, agentId: string, name: string): Promise<string> {
  return await describe(await deps.catalog(), await skillOf(deps, agentId, name))
}

export async function readFileOf(deps: SkillToolsDeps, agentId: string, skill: string, path: string): Promise<string> {
  return await readText(await skillOf(deps, agentId, skill), path, deps.readFileBytes)
}

export async function executeTool(
  deps: SkillToolsDeps,
  skill: string,
  { tool, input }: { readonly tool: string; readonly input: unknown },
  call: ToolCallContext,
): Promise<ToolAnswer> {
  return await execute(deps, await skillOf(deps, call.agentId, skill), tool, input, call)
}
