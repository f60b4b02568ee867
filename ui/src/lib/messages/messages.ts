import { en, type Messages } from "./en";
import { sw } from "./sw";

const languages: Record<string, Messages> = { en, sw };

export type { Messages };

/** The language to use: the node's, else the system's, else English. Always one that has messages. */
export function languageFor(node: string | undefined): string {
  const wanted = (node ?? navigator.language).split("-")[0] ?? "";
  return wanted in languages ? wanted : "en";
}

/** The labels in one of the languages that `languageFor` returns. */
export function messagesIn(language: string): Messages {
  return languages[language] ?? en;
}
