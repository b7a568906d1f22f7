import type { Hooks } from 'svc/sdk'
import type { PluginContext } from 'svc/sdk'
import { SkillCatalog } from './catalog.ts'
import type { BadSkill, SkillRoots } from './catalog.ts'
import type { Settings } from './config.ts'
import { SkillsChanged } from './contract.ts'
import type { SkillFacts } from './contract.ts'
import type { Skill } from './manifest/skill.ts'
import { SkillPrompt } from './prompt.ts'
import { openToolSet } from './run/open.ts'
import type { OpenToolSetDeps } from './run/open.ts'

export interface Opened {
  readonly catalog: SkillCatalog
  readonly prompt: SkillPrompt
}
export type OpenSkillsDeps = OpenToolSetDeps & Pick<PluginContext<Settings, {}, {}>, 'run'> & { readonly hooks: Hooks }

/** The skills there are, nothing of which is read yet, with their tools and what prompts say of them. */
export async function openSkills(
  ctx: OpenSkillsDeps,
  where: { readonly roots: SkillRoots; readonly disabled: () => readonly string[] },
): Promise<Opened> {
  const { config, hooks, log, run } = ctx
  const toolSet = await openToolSet(ctx)
  let warned: readonly string[] = []
  const catalog = new SkillCatalog({
    ...where,
    changed(all, skills: readonly Skill[], bad: readonly BadSkill[]) {
      for (const { folder, problem } of bad) log.warn(`the skill in ${folder} is not used: ${problem.message}`)
      for (const { folder, warnings } of skills)
        for (const warning of warnings) log.warn(`the skill in ${folder}: ${warning}`)
      toolSet.update(all.enabled)
      const unknown = all.unknownDisabled
      for (const warning of unknown) if (!warned.includes(warning)) log.warn(warning)
      warned = unknown
      // Those of installed skills are `skills`.
      ctx.services.daemon.setWarnings('disabled skills', unknown)
      const changed = skills.map(({ name }) => name)
      const told = run(() => hooks.emit(SkillsChanged, { changed, total: all.all.length }))
      told.catch((error: unknown) => log.error('listeners were not told of changed skills', error))
    },
  })
  return { catalog, prompt: new SkillPrompt(catalog, config.prompt_chars) }
}

export function listFacts(catalog: SkillCatalog): readonly SkillFacts[] {
  return catalog.all.map(({ name, version, description, origin }) => ({
    name,
    version,
    description,
    origin,
    enabled: catalog.isEnabled(name),
  }))
}
