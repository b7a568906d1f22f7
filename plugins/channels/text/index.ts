import type { ChannelCapabilities, Dialect } from 'svc/channels'
import { readMarkdown } from './document.ts'
import { splitRuns } from './split.ts'
import type { RenderedMessage } from './split.ts'

export type { RenderedMessage } from './split.ts'
export { StreamedMessage } from './streamed-message.ts'
export type { StreamedMessageDeps, StreamedPart } from './streamed-message.ts'

/**
 * Renders Markdown into the dialect of a platform and splits it into messages that fit. Empty for a blank text.
 * `format` replaces the dialect of the platform, such as `plain`.
 */
export function renderMessages(
  markdown: string,
  { dialect, maxLength, lengthUnit }: Pick<ChannelCapabilities, 'dialect' | 'maxLength' | 'lengthUnit'>,
  { format }: { readonly format?: Dialect | undefined } = {},
): readonly RenderedMessage[] {
  return splitRuns(readMarkdown(markdown), format ?? dialect, { maxLength, lengthUnit })
}
