import { UpstreamFailure } from 'svc/sdk'
import type { CompletionRequest } from 'svc/providers'
import type { Connection } from './connection.ts'
import { withoutKey } from './keys.ts'

/** The failure with what a person can do about it. Anything but an upstream failure passes unchanged. */
export function advise(
  error: unknown,
  provider: string,
  connection: Connection,
  request: Pick<CompletionRequest, 'turns'>,
  tries = 1,
): unknown {
  if (!(error instanceof UpstreamFailure)) return error
  const { baseUrl, key } = connection
  const advice = {
    auth: adviseKey(provider, connection),
    rate_limit: 'Wait, or use another provider or model.',
    network:
      `Check that ${originOf(baseUrl)} can be reached from this ` +
      `machine${provider === 'ollama' ? ' and that Ollama runs' : ''}.`,
    timeout: 'Try again; a smaller request or another model may answer faster.',
    not_found: `Check the model's name and [providers.${provider}] base_url.`,
    // Older messages were summarised by then.
    context_length: 'Shorten the message, begin a new session, or use a model with a larger context.',
    content_filter: 'Rephrase the message.',
    invalid_request: aboutImages(request),
  }[error.reason as string]
  const suffix = `${tries > 1 ? ` (${tries} tries)` : ''}${advice === undefined ? '' : `. ${advice}`}`
  const message = withoutKey(error.message, key)
  if (suffix === '' && message === error.message) return error
  return new UpstreamFailure(error.system, message.replace(/\.$/, '') + suffix, {
    reason: error.reason,
    retry: error.retry,
    ...(error.retryAfterSecs !== undefined && { retryAfterSecs: error.retryAfterSecs }),
    cause: error,
  })
}

/** What to do about a key that was refused, or not sent. */
function adviseKey(provider: string, { entry, baseUrl, key, withheld }: Connection): string | undefined {
  const { envVar, missingRequirement } = entry.driver
  if (withheld !== undefined)
    return (
      `The key of ${withheld} is not sent to ${originOf(baseUrl)}, which is not the provider's own address; ` +
      `name that origin in [providers.${provider}] key_origins to allow it.`
    )
  if (key === undefined && envVar !== undefined)
    return `No key was sent: set ${envVar} or POST one to /api/providers/${provider}/key.`
  // A program has no key of ours; its own message explains how to sign in.
  if (missingRequirement) return undefined
  if (key?.variable !== undefined) return `Check the key in ${key.variable}.`
  if (key?.source === 'config') return `Check the key in [providers.${provider}] api_key.`
  return envVar === undefined ? 'Check the key.' : `Check the key (${envVar}).`
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url)

/** What to do about a request that was refused as it is, where an image may be why. */
function aboutImages(request: Pick<CompletionRequest, 'turns'>): string | undefined {
  const questions = request.turns.filter((turn) => turn.role === 'user')
  const images = questions.filter(({ parts }) => parts.some(({ type }) => type === 'image'))
  if (images.length === 0) return undefined
  return images.at(-1) === questions.at(-1)
    ? 'The model may not read this image: send the message without it, or use another model.'
    : 'The model may not read an image of an earlier message: use another model, or begin a new session.'
}
