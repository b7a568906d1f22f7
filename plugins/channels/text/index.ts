import type { ChannelCapabilities, Dialect } from 'svc/channels'
import { readMarkdown } from './document.ts'
import { splitRuns } from './split.ts'
import type { RenderedMessage } from './split.ts'

export type { RenderedMessage } from './split.ts'
export { StreamedMessage } from './streamed-message.ts'
export type { StreamedMessageDeps, StreamedPart } from './streamed-message.ts'

/** The default of `plugins.channels.format_chars`. */
const MAX_FORMATTED_CHARS = 16_000
export interface RenderOptions {
  readonly format?: Dialect | undefined
  readonly maxFormattedChars?: number | undefined
}

/**
 * Renders Markdown into the dialect of a platform and splits it into messages that fit. Empty for a blank text.
 * `format` replaces the dialect of the platform, such as `plain`. A text of more than `maxFormattedChars` is shown as
 * it was written.
 */
export function renderMessages(
  markdown: string,
  { dialect, maxLength, lengthUnit }: Pick<ChannelCapabilities, 'dialect' | 'maxLength' | 'lengthUnit'>,
  { format, maxFormattedChars = MAX_FORMATTED_CHARS }: RenderOptions = {},
): readonly RenderedMessage[] {
  return splitRuns(readMarkdown(markdown, maxFormattedChars), format ?? dialect, { maxLength, lengthUnit })
}
