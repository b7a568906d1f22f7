import { access, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { allowsHost, entryPath, readVariable } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { SpawnRequest } from 'svc/sdk'
import { isSecretName } from './redactor.ts'
import { FROM_FILE } from './spec.ts'
import type { ServerConfig } from './spec.ts'

export interface ProgramDeps {
  readonly homeDir: string
  /** Values of variables from the vault, by name. */
  readonly credentialsOf: (server: string) => Promise<Readonly<Record<string, string>>>
}

export const folderOf = (homeDir: string, server: string): string => entryPath(join(homeDir, 'mcp'), server)

export async function hasFolder(homeDir: string, server: string): Promise<boolean> {
  return await access(folderOf(homeDir, server)).then(
    () => true,
    () => false,
  )
}
export async function removeFolder(homeDir: string, server: string): Promise<void> {
  await rm(folderOf(homeDir, server), { recursive: true, force: true })
}

export interface Program {
  readonly request: SpawnRequest
  /** Values of its variables that nobody else may see. */
  readonly secrets: readonly string[]
  /** Those of them that are credentials. */
  readonly credentials: readonly string[]
}

/** What the program of a server is started with: its own folder, and an environment of named variables only. */
export async function programOf(deps: ProgramDeps, server: ServerConfig): Promise<Program> {
  const cwd = folderOf(deps.homeDir, server.name)
  await mkdir(cwd, { recursive: true, mode: 0o700 })
  const env = await environmentOf(deps, server)
  const request: SpawnRequest = {
    command: server.command ?? '',
    args: server.args,
    cwd,
    path: server.path,
    env,
    // Each name was written down for this server.
    approvedEnv: Object.keys(env),
    ...(server.trust === 'operator'
      ? { trust: 'operator' as const }
      : { read: server.read, write: server.write, network: (url: URL) => admit(server, url) }),
  }
  const secrets = Object.entries(env).filter(([name]) => server.variables?.[name] === undefined)
  const credentials = secrets.filter(([name]) => server.credentials.includes(name) || isSecretName(name))
  return { request, secrets: secrets.map(([, value]) => value), credentials: credentials.map(([, value]) => value) }
}

async function environmentOf(deps: ProgramDeps, server: ServerConfig): Promise<Record<string, string>> {
  const secrets = server.credentials.length === 0 ? {} : await deps.credentialsOf(server.name)
  const names = [...new Set([...server.env, ...server.credentials])]
  const values = names.map((name) => [
    name,
    secrets[name] ?? server.variables?.[name] ?? (server.origin === FROM_FILE ? readVariable(name) : undefined),
  ])
  const missing = values.filter(([, value]) => value === undefined).map(([name]) => name)
  if (missing.length > 0)
    throw new Refusal(
      'invalid_request',
      server.origin === FROM_FILE
        ? `env: ${missing.join(', ')} is not set in the environment of the daemon`
        : `env: ${missing.join(', ')} has no value in the vault: send it in credentials`,
    )
  return Object.fromEntries(values as [string, string][])
}

function admit({ name, network }: ServerConfig, url: URL): void {
  if (!allowsHost(network, url))
    throw new Refusal('forbidden', `The MCP server "${name}" may not reach ${url.host}: its network does not name it`)
}
