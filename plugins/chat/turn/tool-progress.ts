import type { ToolCallContext, ToolProgress } from 'svc/sdk'
import type { LiveTurn } from './live-turn.ts'

const MAX_MESSAGE_CHARS = 200
type Reports = Required<Pick<ToolCallContext, 'progress' | 'waiting'>> & { readonly end: () => void }

/** Tells the readers of a turn how far a call is: at once, then the latest after each pause. */
export function reportProgress(live: LiveTurn, tool: string, pauseMs: number): Reports {
  let latest: ToolProgress | undefined
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const tell = (): void => {
    timer = undefined
    if (latest === undefined) return
    live.enter(toPhase(tool, latest), false)
    latest = undefined
    timer = setTimeout(tell, pauseMs).unref()
  }
  return {
    progress(each) {
      if (isOver || !Number.isFinite(each.progress)) return
      latest = each
      if (timer === undefined) tell()
    },
    waiting(detail) {
      if (isOver) return () => undefined
      live.enter({ phase: 'waiting_for_approval', detail }, false)
      return () => {
        if (!isOver) live.enter({ phase: 'running_tools', detail: `${tool} is running` }, false)
      }
    },
    end() {
      isOver = true
      clearTimeout(timer)
    },
  }
}

/** The message is text from outside, and is shown to people only. */
function toPhase(tool: string, { progress, total, message = '' }: ToolProgress) {
  const said = message
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_MESSAGE_CHARS)
    .toWellFormed()
  const whole = total !== undefined && Number.isFinite(total) ? total : undefined
  const part = whole === undefined ? String(progress) : `${progress} of ${whole}`
  const detail = `${tool}: ${said === '' ? part : `${said} (${part})`}`
  return { phase: 'running_tools' as const, detail, progress, ...(whole !== undefined && { total: whole }) }
}
