import type { ChannelCapabilities, Dialect } from 'svc/channels'
import type { Account } from '../accounts/account.ts'
import { renderMessages as render } from '../text/index.ts'
import type { RenderedMessage } from '../text/index.ts'

const FORMATS: Readonly<Record<string, Dialect>> = { markdown: 'markdown', plain: 'plain' }

/** Renders Markdown into messages that fit, in the format that the account asks for. */
export function renderMessages(
  markdown: string,
  capabilities: ChannelCapabilities,
  { output_format: format }: Account['settings'],
  maxFormattedChars: number,
): readonly RenderedMessage[] {
  return render(markdown, capabilities, {
    format: format === undefined ? undefined : FORMATS[format],
    maxFormattedChars,
  })
}
