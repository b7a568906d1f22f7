import * as v from 'valibot'

const Providers = v.object({
  enabled: v.boolean(),
  providers: v.array(v.object({ id: v.string(), display_name: v.string() })),
})
const SignedIn = v.object({
  token: v.string(),
  user: v.object({
    sub: v.string(),
    email: v.optional(v.nullable(v.string())),
    name: v.optional(v.nullable(v.string())),
  }),
})
/** A system that people of this daemon can sign in with. */
export type SignInProvider = v.InferOutput<typeof Providers>['providers'][number]
/**
 * The token replaces the key, and is kept as that is (`credential.ts`): see `plugins/sso/cookie.ts` for why it is not a
 * cookie.
 */
export interface SignedIn {
  readonly token: string
  readonly name: string
}

/** The daemon's message, by a code in the address; no text is taken from there. */
const problems = new Map([
  ['expired', 'That took too long, or began in another window. Sign in again.'],
  ['cancelled', 'You were not signed in: the provider refused, or you left.'],
  [
    'denied',
    'The provider knows you, and this daemon does not let you in: ' +
      'it takes verified e-mail addresses that its owner has named.',
  ],
  ['failed', 'The provider could not be reached, or its answer was invalid. The log of the daemon has the reason.'],
])

/** None when that is not configured, or the daemon does not answer: the page still asks for the key. */
export async function listProviders(): Promise<readonly SignInProvider[]> {
  const answer = v.safeParse(Providers, await ask('/api/auth/providers'))
  return answer.success ? answer.output.providers : []
}

/** Leaves the page: it comes back with a code in its address. */
export function leaveFor(provider: SignInProvider): void {
  location.assign(`/api/auth/login/${encodeURIComponent(provider.id)}?to=page`)
}

/**
 * Reads the result of a sign-in from the address and removes it there. `undefined`: this is not a return from a
 * provider.
 */
export async function comeBack(): Promise<SignedIn | { readonly problem: string } | undefined> {
  const [code, problem] = ['#sso=', '#sso-problem='].map((start) =>
    location.hash.startsWith(start) ? location.hash.slice(start.length) : undefined,
  )
  if (code === undefined && problem === undefined) return undefined
  history.replaceState(undefined, '', '/')
  if (problem !== undefined) return { problem: problems.get(problem) ?? 'You were not signed in.' }
  const answer = v.safeParse(SignedIn, await ask('/api/auth/session', { code }))
  if (!answer.success) return { problem: problems.get('expired') ?? '' }
  const {
    token,
    user: { name, email, sub },
  } = answer.output
  return { token, name: name ?? email ?? sub }
}

/** The JSON of an answer, `undefined` without one. */
export async function ask(path: string, body?: unknown): Promise<unknown> {
  try {
    const response = await fetch(path, {
      // The cookie of the way back comes along, and nowhere else.
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      ...(body === undefined
        ? {}
        : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    return response.ok ? await response.json() : undefined
  } catch {
    return undefined
  } // Whether the daemon answers is found out by asking for the agents.
}
