import { renderToml } from 'svc/internal'
import { isObject, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Workspaces } from '../../files/contract.ts'
import type { SourceAgent } from '../model.ts'
import type { SourceFolder } from '../source/source-folder.ts'
import type { Run } from './run.ts'

export interface AgentImportDeps {
  readonly agents: Agents
  readonly workspaces: Workspaces | undefined
  readonly folder: SourceFolder
  readonly maxFiles: number
  /** Statements for the batch that makes the agent of this name. */
  readonly expect: (name: string, row: (agentId: string) => Statement) => Disposable
}

/** Folders of a workspace that are made anew, or hold programs of others. */
const NOT_COPIED = new Set(['.git', 'node_modules', '.venv', '__pycache__', '.openclaw'])
const MAX_DEPTH = 16
const MAX_NAMES = 100

/** Makes the agents, each with its workspace. A taken name gets that of the source after it. */
export async function importAgents(run: Run, deps: AgentImportDeps): Promise<void> {
  for (const agent of run.home.agents)
    await run.attempt('agent', agent.name, async () => {
      const made = await importAgent(run, agent, deps)
      if (made) run.agents.set(agent.key, made)
    })
  if (!run.wanted.agents) return
  for (const agent of run.home.agents) {
    const made = run.agents.get(agent.key)
    if (made && agent.workspace !== undefined)
      await copyWorkspace(run, agent, agent.workspace, made, deps).catch((error: unknown) => {
        if (!(error instanceof Refusal) || error.code === 'service_unavailable') throw error
        run.leave('workspace', agent.name, error.message)
      })
  }
}

type Made = Pick<Agent, 'id' | 'name'>

async function importAgent(run: Run, source: SourceAgent, deps: AgentImportDeps): Promise<Made | undefined> {
  const { agents, expect } = deps
  const before = await run.before('agent', source.key, source.name)
  if (before !== undefined) {
    const known = await agents.find(before)
    if (!known)
      run.warn(`agent "${source.name}" came over before and was removed here: what belongs to it stays behind`)
    return known
  }
  if (!run.wanted.agents) return undefined
  const name = await freeName(run, source, agents)
  const toml = manifestToml(run, source, name)
  const { warnings } = agents.readManifest(toml)
  for (const text of [...source.warnings, ...warnings]) run.warn(`agent "${name}": ${text}`)
  if (run.isDryRun) {
    run.made('agent', source.name, name)
    return { id: '', name }
  }
  using _ = expect(name, (agentId) => run.row('agent', source.key, source.name, agentId))
  // The other system may still wake it.
  const agent = await agents.spawn(toml, { isResting: true })
  run.made('agent', source.name, `${name} (${agent.id})`)
  return agent
}

/** A name that no agent here has; which one, when it is another than there, is among the warnings. */
async function freeName(run: Run, { name }: SourceAgent, agents: Agents): Promise<string> {
  const taken = new Set([...run.agents.values()].map((made) => made.name))
  for (let count = 0; count < MAX_NAMES; count++) {
    const candidate = count === 0 ? name : `${name}-${run.home.type}${count === 1 ? '' : `-${count}`}`
    if (taken.has(candidate) || (await agents.findByName(candidate))) continue
    if (count > 0) run.warn(`there is an agent "${name}" here already: that of the source becomes "${candidate}"`)
    return candidate
  }
  throw new Refusal('conflict', `there are ${MAX_NAMES} agents "${name}-…" already`)
}

/** The manifest as it is there, with its origin. Identity files come from the workspace, and are not made anew. */
function manifestToml(run: Run, { manifest, workspace, key }: SourceAgent, name: string): string {
  const metadata = isObject(manifest['metadata']) ? manifest['metadata'] : {}
  return renderToml(
    plain({
      ...manifest,
      name,
      ...(workspace !== undefined && { generate_identity_files: false }),
      metadata: { ...metadata, migrated_from: run.home.type, migrated_key: key },
    }),
  )
}
/** TOML has no null, and no number that is none. */
function plain(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => {
      if (one === null || one === undefined || one instanceof Uint8Array) return []
      if (Array.isArray(one))
        return [[key, one.filter((each) => each !== null).map((each) => (isObject(each) ? plain(each) : each))]]
      return [[key, isObject(one) ? plain(one) : one]]
    }),
  )
}

/** Copies files that are not there yet. */
async function copyWorkspace(
  run: Run,
  agent: SourceAgent,
  folder: string,
  made: Made,
  deps: AgentImportDeps,
): Promise<void> {
  const { workspaces } = deps
  if (!workspaces) return run.leave('workspace', agent.name, 'the plugin "files" is not loaded')
  if ((await run.before('workspace', agent.key, agent.name)) !== undefined) return
  const files = await listFiles(run, deps.folder, folder, deps.maxFiles)
  if (run.isDryRun) return run.made('workspace', agent.name, `${files.length} files of "${made.name}"`)
  const there = new Set((await workspaces.list(made.id, undefined, deps.maxFiles * 2)).map(({ name }) => name))
  let copied = 0
  for (const name of files) {
    const bytes = await deps.folder.bytes(`${folder}/${name}`)
    if (there.has(name) && bytes) {
      const same = Buffer.from(await workspaces.read(made.id, name, { maxBytes: bytes.length + 1 })).equals(bytes)
      if (same) copied++
      else run.leave('workspace', `${folder}/${name}`, 'there is a file of this name')
      continue
    }
    if (!bytes) {
      const problem = deps.folder.problems.find((one) => one.name === `${folder}/${name}`)
      run.leave('workspace', `${folder}/${name}`, problem?.reason ?? 'it is not there any more')
      continue
    }
    try {
      await workspaces.write(made.id, name, bytes)
      copied++
    } catch (error) {
      if (!(error instanceof Refusal) || error.code === 'service_unavailable') throw error
      run.leave('workspace', `${folder}/${name}`, error.message)
    }
  }
  await run.keep('workspace', agent.key, agent.name, made.id)
  run.made('workspace', agent.name, `${copied} files of "${made.name}"`)
}

async function listFiles(run: Run, source: SourceFolder, folder: string, max: number): Promise<readonly string[]> {
  const found: string[] = []
  const walk = async (below: string, depth: number): Promise<void> => {
    const path = below === '' ? folder : `${folder}/${below}`
    for (const { name, isFolder } of await source.list(path)) {
      const inside = below === '' ? name : `${below}/${name}`
      if (isFolder && NOT_COPIED.has(name)) run.leave('workspace', `${folder}/${inside}`, 'such folders are made anew')
      else if (isFolder && depth >= MAX_DEPTH)
        run.leave('workspace', `${folder}/${inside}`, `it lies deeper than ${MAX_DEPTH} folders`)
      else if (isFolder) await walk(inside, depth + 1)
      else if (found.length < max) found.push(inside)
      else
        return run.leave(
          'workspace',
          path,
          `there are more than ${max} files: raise plugins.migrate.max_workspace_files`,
        )
    }
  }
  await walk('', 1)
  return found
}
