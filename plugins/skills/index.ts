import { join } from 'node:path'
import { bundledSkills, Daemon, DaemonListening } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { Hooks, Metrics, PluginContext } from 'svc/sdk'
import { Agents, AssignablesListed } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { SystemPromptBuilt, TurnStarting } from '../chat/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { WasmRunner } from '../wasm/contract.ts'
import type { BadSkill, SkillCatalog } from './catalog.ts'
import { Settings } from './config.ts'
import { Skills, SkillsChanged } from './contract.ts'
import type { SkillFacts } from './contract.ts'
import type { Skill } from './manifest/skill.ts'
import type { SkillPrompt } from './prompt.ts'
import { skillRoutes } from './routes.ts'
import { DESCRIBE, skillTools } from './tools.ts'

const requires = { agents: Agents, audit: Audit, daemon: Daemon }
/** What tools of skills run in, and work on. */
const more = { wasm: WasmRunner, workspaces: Workspaces }
type Context = PluginContext<Settings, typeof requires, typeof more>

interface Opened {
  readonly catalog: SkillCatalog
  readonly prompt: SkillPrompt
}
interface LazySkills {
  /** What was read so far; `undefined` until somebody asked. */
  readonly opened: () => Opened | undefined
  /** With changes of the files up to now. */
  readonly current: () => Promise<Opened>
  readonly disable: (names: readonly string[]) => void
}

export default definePlugin({
  name: 'skills',
  version: '1.0.0',
  config: Settings,
  requires,
  optional: more,
  provides: { skills: Skills },
  hooks: [SkillsChanged],
  setup(ctx) {
    const { config, hooks, metrics, onConfigChange, routes, run, services, tools } = ctx
    const { disabled: _, ...settings } = config
    const skills = readLazily(ctx)
    const catalog = async (): Promise<SkillCatalog> => (await skills.current()).catalog
    routes.add(...skillRoutes(catalog))
    tools.add(...skillTools({ ...services, catalog, hooks, tools, readFileBytes: settings.read_file_bytes }))
    addToPrompts(hooks, services.agents, skills)
    hooks.on(AssignablesListed, async (listed) =>
      listed.kind === 'skills'
        ? { ...listed, names: [...listed.names, ...(await catalog()).all.map(({ name }) => name)] }
        : listed,
    )
    hooks.on(DaemonListening, () => run(async () => void (await catalog())))
    observe(metrics, skills)
    onConfigChange(({ disabled: next, ...rest }) => {
      if (JSON.stringify(rest) !== JSON.stringify(settings)) return false
      skills.disable(next)
      return true
    })
    return { skills: { list: async () => listFacts(await catalog()) } }
  },
})

function readLazily(ctx: Context): LazySkills {
  const { config, hooks, log, run, services } = ctx
  const home = services.daemon.config().homeDir
  const roots = { bundled: bundledSkills(), local: join(home, 'skills') }
  let disabled: readonly string[] = config.disabled
  let opened: Opened | undefined
  const tell = (catalog: SkillCatalog, skills: readonly Skill[]): void => {
    const changed = skills.map(({ name }) => name)
    const told = run(() => hooks.emit(SkillsChanged, { changed, total: catalog.all.length }))
    told.catch((error: unknown) => log.error('listeners were not told of changed skills', error))
  }
  const open = async (): Promise<Opened> => {
    const [{ SkillCatalog }, { SkillPrompt }, { openToolSet }] = await Promise.all([
      import('./catalog.ts'),
      import('./prompt.ts'),
      import('./run/open.ts'),
    ])
    const toolSet = await openToolSet(ctx)
    const changed = (catalog: SkillCatalog, skills: readonly Skill[], bad: readonly BadSkill[]): void => {
      for (const { folder, problem } of bad) log.warn(`the skill in ${folder} is not used: ${problem.message}`)
      toolSet.update(catalog.enabled)
      tell(catalog, skills)
    }
    const catalog = new SkillCatalog({ roots, disabled: () => disabled, changed })
    return (opened = { catalog, prompt: new SkillPrompt(catalog, config.prompt_chars) })
  }
  let opening: Promise<Opened> | undefined
  return {
    opened: () => opened,
    async current() {
      const found = opened ?? (await (opening ??= open()))
      await found.catalog.refresh()
      return found
    },
    disable(names) {
      disabled = names
      opened?.catalog.touch()
    },
  }
}

function addToPrompts(hooks: Hooks, agents: Agents, skills: LazySkills): void {
  // Once for each turn: what was edited since holds from here on.
  hooks.on(TurnStarting, async ({ agent: { manifest } }) => {
    if (manifest.capabilities.tools.length > 0 && !manifest.skills_disabled) await skills.current()
  })
  hooks.on(SystemPromptBuilt, (built) => {
    const opened = skills.opened()
    if (!opened || !agents.mayUse(built.agent, { name: DESCRIBE, risk: 'read' })) return built
    const text = opened.prompt.for(built.agent.manifest)
    return text === '' ? built : { ...built, text: built.text === '' ? text : `${built.text}\n\n${text}` }
  })
}

function observe(metrics: Metrics, { opened }: LazySkills): void {
  metrics.observed('svc_skills', 'Skills, by origin.', () =>
    Object.entries(Object.groupBy(opened()?.catalog.all ?? [], ({ origin }) => origin)).map(([origin, list]) => ({
      value: list.length,
      labels: { origin },
    })),
  )
  metrics.observed('svc_skill_problems', 'Folders of skills that cannot be used.', () => [
    { value: opened()?.catalog.bad.length ?? 0 },
  ])
}

function listFacts(catalog: SkillCatalog): readonly SkillFacts[] {
  return catalog.all.map(({ name, version, description, origin }) => ({
    name,
    version,
    description,
    origin,
    enabled: catalog.isEnabled(name),
  }))
}
