import { escapeControls } from 'svc/internal'
import type { Kind, LeftBehind, SourceHome, SourceType } from './model.ts'

export interface ImportedThing {
  readonly kind: Kind
  readonly name: string
  readonly destination: string
}
/** What came of a run, for people and programs; no secrets are in it. */
export interface Report {
  readonly runId: string
  readonly type: SourceType
  readonly path: string
  readonly version: string
  readonly isDryRun: boolean
  readonly startedAt: string
  readonly endedAt: string
  /** Why it ended early. */
  readonly error: string | undefined
  readonly imported: readonly ImportedThing[]
  /** Of an earlier run. */
  readonly unchanged: readonly ImportedThing[]
  readonly left: readonly LeftBehind[]
  readonly warnings: readonly string[]
}

const titles: Readonly<Record<Kind, string>> = {
  agent: 'Agents',
  skill: 'Skills',
  workspace: 'Workspaces',
  value: 'Values of agents',
  memory: 'Memories',
  session: 'Conversations',
  channel: 'Channels',
  workflow: 'Workflows',
  cron: 'Schedules',
  trigger: 'Triggers',
  key: 'Keys of providers',
  config: 'Configuration',
}
/** Lines of one kind; the JSON report has all. */
const MAX_LINES = 200
/** Of one text on a line. */
const MAX_CHARS = 1_000

/** Markdown for people. */
export function renderReport(report: Report): string {
  const { isDryRun, imported, unchanged, left, warnings, error } = report
  const verb = isDryRun ? 'would come over' : 'came over'
  const lines = [
    `# ${isDryRun ? 'Rehearsal of a move' : 'Move'} from ${names[report.type]}`,
    '',
    `Source: ${code(report.path)} (${inline(report.version)}), read ${report.startedAt}.`,
    '',
    `${imported.length} ${verb}, ${unchanged.length} came over before, ${left.length} stay behind.`,
  ]
  if (error !== undefined)
    lines.push('', `**It ended early: ${inline(error)}. Run it again: it goes on where it ended.**`)
  for (const kind of Object.keys(titles) as Kind[]) {
    const made = imported.filter((one) => one.kind === kind)
    if (made.length === 0) continue
    lines.push('', `## ${titles[kind]}`, '')
    lines.push(...some(made, ({ name, destination }) => `- ${inline(name)} → ${inline(destination)}`))
  }
  if (left.length > 0) {
    lines.push('', '## What stays behind', '')
    lines.push(...some(left, ({ kind, name, reason }) => `- ${titles[kind]}: ${code(name)}: ${inline(reason)}`))
  }
  if (warnings.length > 0) lines.push('', '## What to look at', '', ...some(warnings, (text) => `- ${inline(text)}`))
  return `${lines.join('\n')}\n`
}
const names: Readonly<Record<SourceType, string>> = {
  openclaw: 'OpenClaw',
  openfang: 'OpenFang',
  librefang: 'LibreFang',
}
function some<T>(list: readonly T[], toLine: (one: T) => string): readonly string[] {
  const shown = list.slice(0, MAX_LINES).map(toLine)
  return list.length > MAX_LINES ? [...shown, `- … ${list.length - MAX_LINES} more in the JSON report`] : shown
}
/** Text of a source is no Markdown: what stands between two backticks is none by itself, and the rest is escaped. */
const inline = (text: string): string =>
  line(text)
    .slice(0, MAX_CHARS)
    .split(/((?<!`)`[^`]+`(?!`))/)
    .map((part, at) => (at % 2 === 1 ? part : part.replaceAll(ACTIVE, '\\$&')))
    .join('')
/** An underline within a word is no emphasis. */
const ACTIVE = /[\\`*[\]<>|]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu
const code = (text: string): string => `\`${line(text).replaceAll('`', ' ').slice(0, MAX_CHARS)}\``

/** A text of a source on one line, without what moves a cursor or turns the direction of reading. */
const line = (text: string): string => escapeControls(text.replaceAll(/[\s\p{Cc}]+/gu, ' '))
/** The same, without the secrets of the source. */
export const shown = (text: string, { hide }: Pick<SourceHome, 'hide'>): string => line(hide(text))
/** The same for all texts of a report but the path, which may be used again. */
export function shownReport(report: Report, home: Pick<SourceHome, 'hide'>): Report {
  const text = (one: string): string => shown(one, home)
  const things = (list: readonly ImportedThing[]) =>
    list.map(({ kind, name, destination }) => ({ kind, name: text(name), destination: text(destination) }))
  const { imported, unchanged, left, warnings, version, error } = report
  return {
    ...report,
    version: text(version),
    error: error === undefined ? undefined : text(error),
    imported: things(imported),
    unchanged: things(unchanged),
    left: left.map((one) => shownLeft(one, home)),
    warnings: warnings.map(text),
  }
}
export const shownLeft = ({ kind, name, reason }: LeftBehind, home: Pick<SourceHome, 'hide'>): LeftBehind => ({
  kind,
  name: shown(name, home),
  reason: shown(reason, home),
})

export function toJson(report: Report): Record<string, unknown> {
  const { runId, isDryRun, startedAt, endedAt, error, ...rest } = report
  return {
    run_id: runId,
    dry_run: isDryRun,
    started_at: startedAt,
    ended_at: endedAt,
    error: error ?? null,
    ...rest,
  }
}
