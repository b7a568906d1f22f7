/**
 * What a plugin uses of the daemon and of the world. What is not declared here is refused when the plugin uses it. Its
 * own key-value storage, metrics, log and hooks need no declaration. The services of `requires` and `optional`, its
 * pages and its sections of the configuration are declared where they are defined.
 */
export interface PluginUses {
  /** Paths of its routes and sockets: `/api/weather`, or `/api/weather/*` for that path and everything below it. */
  readonly routes?: readonly string[]
  /** Ids of the hooks of other plugins it listens to, such as `daemon:listening`; `*` stands for any characters. */
  readonly hooks?: readonly string[]
  /** Names of the tools it registers or calls; `*` stands for any characters. */
  readonly tools?: readonly string[]
  /**
   * Hosts it sends requests and connects to, as in `[outbound] allow`: `api.example.org`, `*.example.org`,
   * `example.org:8443`.
   */
  readonly hosts?: readonly string[]
  /** It has tables. They are its own: it can never use those of others. */
  readonly tables?: boolean
  /** Names of the secrets it keeps in the vault; `true` for any. They are its own as well. */
  readonly secrets?: boolean | readonly string[]
  /** Programs it starts, such as `git`. They are confined and reach only the `hosts`. */
  readonly programs?: readonly string[]
  /** It has recurring work. */
  readonly jobs?: boolean
  /** It opens ports, at addresses of the configuration file. */
  readonly listeners?: boolean
  /** It accepts bearer credentials beside the API key. */
  readonly credentials?: boolean
}
