import { UpstreamFailure } from 'svc/sdk'
import type { CompletionRequest } from 'svc/providers'
import type { Connection } from './connection.ts'
import { withoutKey } from './keys.ts'

/** The failure with what a person can do about it. Anything but an upstream failure passes unchanged. */
export function advise(
  error: unknown,
  provider: string,
  { entry, baseUrl, key, withheld }: Connection,
  request: Pick<CompletionRequest, 'turns'>,
  tries = 1,
): unknown {
  if (!(error instanceof UpstreamFailure)) return error
  const advice = {
    auth:
      withheld !== undefined
        ? `The key of ${withheld} is not sent to ${originOf(baseUrl)}, which is not the provider's own address; name that origin in [providers.${provider}] key_origins to allow it.`
        : key === undefined && entry.driver.envVar !== undefined
          ? `No key was sent: set ${entry.driver.envVar} or POST one to /api/providers/${provider}/key.`
          : // A program has no key of ours; what it said goes with how to sign in.
            entry.driver.missingRequirement
            ? undefined
            : `Check the key ${key?.variable !== undefined ? `in ${key.variable}` : key?.source === 'config' ? `in [providers.${provider}] api_key` : entry.driver.envVar !== undefined ? `(${entry.driver.envVar})` : ''}.`.replace(
                ' .',
                '.',
              ),
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
  const said = withoutKey(error.message, key)
  if (suffix === '' && said === error.message) return error
  return new UpstreamFailure(error.system, said.replace(/\.$/, '') + suffix, {
    reason: error.reason,
    retry: error.retry,
    ...(error.retryAfterSecs !== undefined && { retryAfterSecs: error.retryAfterSecs }),
    cause: error,
  })
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url)

/** What to do about a request that was refused as it is, where an image may be why. */
function aboutImages(request: Pick<CompletionRequest, 'turns'>): string | undefined {
  const asked = request.turns.filter((turn) => turn.role === 'user')
  const images = asked.filter(({ parts }) => parts.some(({ type }) => type === 'image'))
  if (images.length === 0) return undefined
  return images.at(-1) === asked.at(-1)
    ? 'The model may not read this image: send the message without it, or use another model.'
    : 'The model may not read an image of an earlier message: use another model, or begin a new session.'
}
