import { useEffect, useRef, useState } from 'preact/hooks'
import { textOf } from './transcript.ts'
import type { Answer } from './transcript.ts'

/** Announces to a screen reader that an answer began and, once, its text: not every token. Problems are alerts. */
export function Announcer({ name, answer }: { readonly name: string; readonly answer: Answer | undefined }) {
  const [announcement, setAnnouncement] = useState('')
  const openId = useRef<number | undefined>(undefined)
  useEffect(() => {
    if (answer?.state === 'thinking') {
      openId.current = answer.id
      setAnnouncement(`${name} is thinking`)
    } else if (answer && openId.current === answer.id && answer.state !== 'streaming') {
      openId.current = undefined
      setAnnouncement(describeEnd(name, answer))
    }
  }, [answer?.id, answer?.state])
  return (
    <p class="hidden" role="status" aria-live="polite" aria-atomic="true">
      {announcement}
    </p>
  )
}

function describeEnd(name: string, { state, parts }: Answer): string {
  if (state === 'stopped') return 'Answer stopped'
  if (state !== 'done') return ''
  const text = textOf(parts)
    .replace(/[*_`#>|]/g, '')
    .slice(0, 2000)
  return `${name} answered: ${text}`
}
