import { UpstreamFailure } from 'svc/sdk'

/** A time stamp names a message within its channel only. */
export function messageId(channel: string, ts: string): string {
  return `${channel}/${ts}`
}

/** The time stamp in the id of a message. */
export function timestampOf(id: string): string {
  const ts = id.slice(id.indexOf('/') + 1)
  if (/^\d+\.\d+$/.test(ts)) return ts
  throw new UpstreamFailure('slack', 'This is not the id of a message on Slack', {
    reason: 'invalid_request',
    retry: 'never',
  })
}
