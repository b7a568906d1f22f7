/** A style sheet that a component brings: the build puts all of them into one file. */
declare module '*.css'
