/**
 * The text of an answer. A feed has no end, so that an event stream, which is known by its type and not by its path, is
 * closed unread and gives no text.
 */
export async function textUnlessFeed(response: Response): Promise<string> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return response.text()
  await response.body?.cancel()
  return ''
}
