import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { Refusal } from 'svc/sdk'
import type { SourceHome, SourceType } from './model.ts'
import type { OpenedSource } from './source/open-source.ts'
import { entryOf } from './source/values.ts'

/** Where homes of the other systems are; `OPENCLAW_STATE_DIR` and the like win. */
const places: readonly (readonly [type: SourceType, variable: string, folders: readonly string[]])[] = [
  [
    'openclaw',
    'OPENCLAW_STATE_DIR',
    ['.openclaw', '.clawdbot', '.moldbot', '.moltbot', 'openclaw', '.config/openclaw'],
  ],
  ['openfang', 'OPENFANG_HOME', ['.openfang']],
  ['librefang', 'LIBREFANG_HOME', ['.librefang']],
]
const APP_FOLDERS = ['APPDATA', 'LOCALAPPDATA'] as const

export interface Place {
  readonly type: SourceType
  readonly path: string
}
/** Folders that may be homes, those that the environment names first. */
export function candidates(
  env: Readonly<Record<string, string | undefined>>,
  home: string = homedir(),
): readonly Place[] {
  return places.flatMap(([type, variable, folders]) => {
    const named = env[variable]
    const paths = [
      ...(named !== undefined && isAbsolute(named) ? [named] : []),
      ...folders.map((folder) => join(home, folder)),
      ...(type === 'openclaw' ? APP_FOLDERS.flatMap((name) => (env[name] ? [join(env[name], 'openclaw')] : [])) : []),
    ]
    return [...new Set(paths)].map((path) => ({ type, path }))
  })
}

/** The homes that there are. What cannot be read is none. */
export async function detect(
  found: readonly Place[],
  open: (path: string, type: SourceType) => Promise<OpenedSource>,
): Promise<readonly SourceHome[]> {
  const homes: SourceHome[] = []
  for (const { type, path } of found) {
    if (!(await stat(path).catch(() => undefined))?.isDirectory()) continue
    try {
      await using source = await open(path, type)
      homes.push(source.home)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
  }
  return homes
}

const NOT_SUPPORTED: Readonly<Record<string, string>> = {
  langchain:
    'LangChain is a library and keeps no agents that could come over: write a manifest with the system prompt of the ' +
    'chain (docs/agents.md), offer its tools over MCP (docs/mcp.md), or let the chain call this daemon over ' +
    '/v1/chat/completions (docs/integrations.md)',
  autogpt:
    'AutoGPT is not supported: make an agent with the goals of its ai_settings.yaml as the system prompt ' +
    '(docs/agents.md), put its files into the workspace of the agent, and rebuild blocks of the platform as a workflow ' +
    '(docs/automation.md)',
}
/** Throws `invalid_request` for a system that is known and not supported, with what to do instead. */
export function refuseUnsupported(source: string): void {
  const reason = entryOf(NOT_SUPPORTED, source.toLowerCase().replaceAll(/[^a-z]/g, ''))
  if (reason !== undefined) throw new Refusal('invalid_request', `source: ${reason}`)
}
