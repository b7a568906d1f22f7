import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Spawn } from 'svc/sdk'
import type { Approval, Approvals } from '../approvals/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Settings } from './config.ts'
import type { Hand } from './catalog.ts'
import type { RequirementState } from './requirements.ts'

const OUTPUT_BYTES = 65_536
const SHOWN_CHARS = 500

export interface DependencyResult {
  readonly key: string
  readonly status: 'already_installed' | 'skipped' | 'no_command' | 'installed' | 'error' | 'timeout'
  readonly command?: string
  readonly exit_code?: number | null
  readonly message: string
}
export interface InstallDeps {
  readonly spawn: Pick<Spawn, 'has' | 'start'>
  readonly approvals: () => Approvals | undefined
  readonly audit: Pick<Audit, 'write'>
  readonly settings: Settings
}
interface Planned {
  readonly requirement: RequirementState
  readonly command: string
}

/** Runs the commands that install what a hand lacks, after a person has approved exactly these. */
export async function installPrograms(
  deps: InstallDeps,
  hand: Pick<Hand, 'id'>,
  requirements: readonly RequirementState[],
  signal: AbortSignal,
): Promise<readonly DependencyResult[]> {
  const results = new Map<string, DependencyResult>()
  const planned: Planned[] = []
  for (const requirement of requirements) {
    const command = commandFor(deps.spawn, requirement)
    if (requirement.satisfied || requirement.type !== 'binary' || command === undefined)
      results.set(requirement.key, withoutCommand(requirement))
    else planned.push({ requirement, command })
  }
  for (const result of await carryOut(deps, hand, planned, signal)) results.set(result.key, result)
  return requirements.flatMap(({ key }) => results.get(key) ?? [])
}

function withoutCommand({ key, label, satisfied, type, install, description }: RequirementState): DependencyResult {
  if (satisfied) return { key, status: 'already_installed', message: `${label} is there` }
  const where = install?.signup_url ?? install?.manual_url ?? install?.docs_url
  const more = where === undefined ? description : `see ${where}`
  if (type === 'binary') return { key, status: 'no_command', message: `No command for this machine. ${more}`.trim() }
  return { key, status: 'skipped', message: `This is no program that could be installed. ${more}`.trim() }
}

function commandFor(spawn: Pick<Spawn, 'has'>, { install }: RequirementState): string | undefined {
  if (!install) return undefined
  if (process.platform === 'darwin') return install.macos ?? install.pip
  if (process.platform === 'win32') return install.windows ?? install.pip
  if (install.linux_apt !== undefined && spawn.has('apt-get')) return install.linux_apt
  if (install.linux_dnf !== undefined && spawn.has('dnf')) return install.linux_dnf
  if (install.linux_pacman !== undefined && spawn.has('pacman')) return install.linux_pacman
  return install.pip
}

async function carryOut(
  deps: InstallDeps,
  hand: Pick<Hand, 'id'>,
  planned: readonly Planned[],
  signal: AbortSignal,
): Promise<readonly DependencyResult[]> {
  if (planned.length === 0) return []
  const skip = (message: string): readonly DependencyResult[] =>
    planned.map(({ requirement: { key }, command }) => ({ key, status: 'skipped', command, message }))
  if (!deps.settings.install_programs) return skip('plugins.hands.install_programs is off: run the command yourself')
  const { state, decidedBy } = await ask(deps, hand, planned, signal)
  if (state !== 'approved')
    return skip(`was not approved: ${state}${decidedBy === undefined ? '' : ` by ${decidedBy}`}`)
  const folder = await mkdtemp(join(tmpdir(), 'svc-hand-'))
  try {
    const results: DependencyResult[] = []
    for (const each of planned) results.push(await runCommand(deps, hand, each, folder, signal))
    return results
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function ask(
  { approvals: find, settings }: InstallDeps,
  { id: hand }: Pick<Hand, 'id'>,
  planned: readonly Planned[],
  signal: AbortSignal,
): Promise<Approval> {
  const approvals = find()
  if (!approvals) throw new Refusal('service_unavailable', 'Nobody can be asked: the plugin "approvals" is not loaded')
  const commands = planned.map(({ command }) => command)
  const { id } = await approvals.request({
    agentId: '',
    agentName: `hand ${hand}`,
    tool: 'hand_install',
    action: 'hand_install',
    intent: `install ${planned.length === 1 ? 'a program' : `${planned.length} programs`} on this machine`,
    summary: commands.join('; ').slice(0, 512),
    description: 'The commands run as the user of the daemon, one after the other, without a shell.',
    payload: { hand_id: hand, commands },
    risk: 'critical',
    lasting: true,
    timeoutSecs: settings.approval_secs,
  })
  try {
    return await approvals.decision(id, signal)
  } catch (error) {
    if (signal.aborted) await approvals.withdrawRequest(id, 'whoever asked does not wait any more')
    throw error
  }
}

async function runCommand(
  { spawn, audit, settings }: InstallDeps,
  { id: hand }: Pick<Hand, 'id'>,
  { requirement: { key, label, check_value: program }, command }: Planned,
  cwd: string,
  signal: AbortSignal,
): Promise<DependencyResult> {
  await audit.write({ event: 'hand_changed', details: `hand "${hand}": an approved command is run: ${command}` })
  const [name = '', ...args] = command.split(' ')
  try {
    const child = await spawn.start({
      command: name,
      args,
      cwd,
      trust: 'operator',
      background: true,
      timeoutMs: settings.install_timeout_secs * 1000,
      outputBytes: OUTPUT_BYTES,
      signal,
    })
    const { code, reason } = await child.ended
    const said = child.read().text.trim().slice(-SHOWN_CHARS)
    const end = { key, command, exit_code: code }
    if (reason === 'timeout')
      return { ...end, status: 'timeout', message: `took more than ${settings.install_timeout_secs} s and was ended` }
    if (code !== 0) return { ...end, status: 'error', message: said === '' ? `ended with ${code}` : said }
    if (!spawn.has(program))
      return { ...end, status: 'error', message: `ended well, and ${program} is still not there. ${said}`.trim() }
    return { ...end, status: 'installed', message: `${label} is there now` }
  } catch (error) {
    signal.throwIfAborted()
    return { key, status: 'error', command, message: messageOf(error) }
  }
}
