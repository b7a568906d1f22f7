import * as v from 'valibot'

const whole = v.pipe(v.number(), v.integer())
const Profile = v.object({
  sub: v.string(),
  email: v.nullable(v.string()),
  name: v.nullable(v.string()),
  picture: v.nullable(v.string()),
})

export const Providers = v.object({
  enabled: v.boolean(),
  providers: v.array(v.object({ id: v.string(), display_name: v.string() })),
})
export const LoginParams = v.object({ provider: v.string() })
/** `to=page`: end at the chat page. `moved`: the browser was sent to the host of the redirect address already. */
export const LoginQuery = v.object({ to: v.optional(v.picklist(['page'])), moved: v.optional(v.literal('1')) })

const parameter = v.optional(v.pipe(v.string(), v.maxLength(8192)))
/** The answer of a provider (RFC 6749, 4.1.2; RFC 9207). It may have more fields. */
export const Callback = v.looseObject({
  code: parameter,
  state: parameter,
  iss: parameter,
  error: parameter,
  error_description: parameter,
})
export type Callback = v.InferOutput<typeof Callback>

export const SignedIn = v.object({
  token: v.string(),
  token_type: v.literal('Bearer'),
  expires_in: whole,
  provider: v.string(),
  user: Profile,
})
export type SignedIn = v.InferOutput<typeof SignedIn>
export const Handover = v.object({ code: v.pipe(v.string(), v.minLength(1), v.maxLength(256)) })
export const SignedOut = v.object({ status: v.literal('signed_out') })

const SignInView = v.object({
  id: v.string(),
  user_id: v.pipe(v.string(), v.description('Id of the person, made of issuer and `sub`: memories are kept under it.')),
  provider: v.string(),
  sub: v.string(),
  email: v.nullable(v.string()),
  name: v.nullable(v.string()),
  created_at: v.string(),
  expires_at: v.string(),
})
export const SignIns = v.object({ sessions: v.array(SignInView), total: whole })
export const SignInParams = v.object({ id: v.pipe(v.string(), v.uuid('Invalid sign-in ID')) })

export const UserInfo = v.object({
  auth_method: v.picklist(['external_oauth', 'api_key', 'device', 'none']),
  /** Empty when nobody is signed in. */
  issuer: v.string(),
  provider: v.optional(v.string()),
  sub: v.optional(v.string()),
  email: v.optional(v.nullable(v.string())),
  email_verified: v.optional(v.boolean()),
  name: v.optional(v.nullable(v.string())),
  picture: v.optional(v.nullable(v.string())),
  user_id: v.optional(
    v.pipe(v.string(), v.description('Id of the person, made of `issuer` and `sub`: memories are kept under it.')),
  ),
  /** Always empty: there are no roles. */
  roles: v.optional(v.array(v.string())),
})
export const Introspection = v.object({
  token: v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
  provider: v.optional(v.pipe(v.string(), v.maxLength(64))),
})
export const Introspected = v.object({
  active: v.boolean(),
  /** The same text for whatever is not active. */
  error: v.optional(v.string()),
  provider: v.optional(v.string()),
  sub: v.optional(v.string()),
  email: v.optional(v.nullable(v.string())),
  name: v.optional(v.nullable(v.string())),
  roles: v.optional(v.array(v.string())),
  iss: v.optional(v.string()),
  exp: v.optional(whole),
  iat: v.optional(whole),
})

const flag = v.pipe(
  v.union([v.number(), v.bigint(), v.boolean()]),
  v.transform((value) => Boolean(value)),
)
export const Session = v.object({
  id: v.string(),
  digest: v.string(),
  /** See `Sessions`. */
  proof: v.nullable(v.string()),
  provider: v.string(),
  issuer: v.string(),
  sub: v.string(),
  email: v.nullable(v.string()),
  email_verified: flag,
  name: v.nullable(v.string()),
  picture: v.nullable(v.string()),
  created_at: v.string(),
  expires_at: v.string(),
})
/** A person who is signed in. */
export type Session = v.InferOutput<typeof Session>
export const Failed = v.object({
  error: v.object({
    code: v.literal('upstream_failure'),
    message: v.string(),
    details: v.object({}),
    request_id: v.string(),
  }),
})
