import { join } from 'node:path'
import {
  Broadcast,
  bundledSkills,
  Configuration,
  Daemon,
  DaemonListening,
  DatabaseSnapshots,
  followChanges,
} from 'svc/internal'
import { definePlugin, parse } from 'svc/sdk'
import type { Hooks, Metrics, PluginContext } from 'svc/sdk'
import { Agents, AgentVariables, AssignablesListed } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { SystemPromptBuilt, TurnStarting } from '../chat/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Screening } from '../screening/contract.ts'
import { WasmRunner } from '../wasm/contract.ts'
import type { SkillAdmin } from './admin.ts'
import type { SkillCatalog } from './catalog.ts'
import { Settings } from './config.ts'
import { configRoutes } from './config-routes.ts'
import { Skills, SkillsChanged } from './contract.ts'
import { hubRoutes } from './hub-routes.ts'
import { installRoutes } from './install-routes.ts'
import { migrations } from './migrations.ts'
import type { Opened } from './open.ts'
import type { OpenedAdmin } from './open-admin.ts'
import { skillRoutes } from './routes.ts'
import { DESCRIBE, skillTools } from './tools.ts'
import { InstallRequest } from './schema.ts'

const requires = {
  agents: Agents,
  audit: Audit,
  broadcast: Broadcast,
  configuration: Configuration,
  daemon: Daemon,
  snapshots: DatabaseSnapshots,
  variables: AgentVariables,
}
/** What tools of skills run in, and work on. */
const more = { screening: Screening, wasm: WasmRunner, workspaces: Workspaces }
type Context = PluginContext<Settings, typeof requires, typeof more>

interface LazySkills {
  /** What was read so far; `undefined` until somebody asked. */
  readonly opened: () => Opened | undefined
  /** With changes of the files up to now; `isTurn` as in `SkillCatalog.refresh`. */
  readonly current: (options?: { readonly isTurn?: boolean }) => Promise<Opened>
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
  migrations,
  pages: [
    {
      path: 'skills',
      title: 'Skills',
      group: 'Agents',
      file: 'pages/skills.html',
      assets: ['skills.css', 'skills.js'],
    },
  ],
  setup(ctx) {
    const { config, hooks, leaving, log, metrics, onConfigChange, own, routes, run, services, tools, vault } = ctx
    const { disabled: _, ...settings } = config
    const skills = readLazily(ctx)
    const catalog = async (): Promise<SkillCatalog> => (await skills.current()).catalog
    tools.add(...skillTools({ ...services, catalog, hooks, tools, readFileBytes: settings.read_file_bytes }))
    addToPrompts(hooks, services.agents, skills)
    hooks.on(AssignablesListed, async (listed) =>
      listed.kind === 'skills'
        ? { ...listed, names: [...listed.names, ...(await catalog()).all.map(({ name }) => name)] }
        : listed,
    )
    const { installed, admin } = installSkills(ctx, catalog)
    const present = async (): Promise<SkillCatalog> => {
      await installed()
      return await catalog()
    }
    routes.add(...skillRoutes(present, vault), ...configRoutes({ catalog: present, vault, audit: services.audit }))
    // So that the first turn does not wait for it; a daemon that is stopping already needs none.
    hooks.on(DaemonListening, () => {
      const read = run(async () => void (await catalog()))
      read.catch((error: unknown) => {
        if (!leaving.aborted) log.error('the skills could not be read', error)
      })
    })
    own('watched folders', () => skills.opened()?.catalog[Symbol.dispose]())
    own('warnings', () => services.daemon.setWarnings('disabled skills', []))
    observe(metrics, skills)
    onConfigChange(({ disabled: next, ...rest }) => {
      if (JSON.stringify(rest) !== JSON.stringify(settings)) return false
      skills.disable(next)
      return true
    })
    return {
      skills: {
        list: async () => (await import('./open.ts')).listFacts(await catalog()),
        async install(source, { isCheck = false } = {}) {
          const request = parse(InstallRequest, { source, dry_run: isCheck }, 'skill')
          return { name: (await (await admin()).install(request)).skill }
        },
        async scan({ files, manifest, tools: needsTools, permissions }) {
          const asked = { ...manifest, needsTools, permissions, runtime: 'prompt_only' as const, tools: [] }
          return (await import('./install/scan.ts')).scan(asked, files, ctx.optional('screening'))
        },
      },
    }
  },
})

function readLazily(ctx: Context): LazySkills {
  const { config, services } = ctx
  const home = services.daemon.config().homeDir
  const roots = { bundled: bundledSkills(), local: join(home, 'skills') }
  let disabled: readonly string[] = config.disabled
  let opened: Opened | undefined
  const open = async (): Promise<Opened> =>
    (opened = await (await import('./open.ts')).openSkills(ctx, { roots, disabled: () => disabled }))
  let opening: Promise<Opened> | undefined
  return {
    opened: () => opened,
    async current(options) {
      const found = opened ?? (await (opening ??= open()))
      await found.catalog.refresh(options)
      return found
    },
    disable(names) {
      disabled = names
      opened?.catalog.touch()
    },
  }
}

/**
 * What installs is loaded with the first request, or when the database names what was installed. `installed` waits until
 * the folders are what the database said last.
 */
function installSkills(
  ctx: Context,
  catalog: () => Promise<SkillCatalog>,
): { readonly installed: () => Promise<void>; readonly admin: () => Promise<SkillAdmin> } {
  const { db, hooks, log, own, routes, run, services } = ctx
  let opening: Promise<OpenedAdmin> | undefined
  const tell = followChanges({ broadcast: services.broadcast, own }, 'skills.installed', () => follow())
  const open = async (): Promise<OpenedAdmin> => {
    const { openAdmin } = await import('./open-admin.ts')
    return await openAdmin(ctx, catalog, tell)
  }
  const opened = (): Promise<OpenedAdmin> =>
    (opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    }))
  let followed = Promise.resolve()
  const follow = (): void => {
    const isOpen = opening !== undefined
    const done = run(async () => {
      const { hasInstalled } = await import('./install/store.ts')
      if (isOpen) await (await opened()).follow()
      else if (await hasInstalled(db)) await opened()
    })
    followed = done.catch((error: unknown) => log.error('installed skills are not as in the database', error))
  }
  const admin = async (): Promise<SkillAdmin> => (await opened()).admin
  routes.add(...installRoutes(admin), ...hubRoutes(admin))
  hooks.on(DaemonListening, follow)
  return { installed: () => followed, admin }
}

function addToPrompts(hooks: Hooks, agents: Agents, skills: LazySkills): void {
  // Once for each turn: what was edited since holds from here on.
  hooks.on(TurnStarting, async ({ agent: { manifest } }) => {
    if (manifest.capabilities.tools.length > 0 && !manifest.skills_disabled) await skills.current({ isTurn: true })
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
