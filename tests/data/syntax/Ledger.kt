package shop.ledger

import java.time.Instant
import kotlin.math.abs

/** What an account may do. */
enum class Kind { DEPOSIT, WITHDRAWAL }

data class Entry(val kind: Kind, val cents: Long, val at: Instant = Instant.now())

interface Listener {
    fun changed(name: String, balance: Long)
}

class OverdrawnException(message: String) : RuntimeException(message)

/**
 * An account with its entries.
 */
class Account(private val name: String, private val limit: Long = 0) {
    private val entries = mutableListOf<Entry>()
    private val listeners = ArrayList<Listener>()

    var balance: Long = 0
        private set

    val isEmpty: Boolean
        get() = entries.isEmpty()

    fun deposit(cents: Long): Account {
        require(cents > 0) { "nothing to deposit: $cents" }
        add(Entry(Kind.DEPOSIT, cents))
        return this
    }

    fun withdraw(cents: Long) {
        if (balance - cents < -limit) {
            throw OverdrawnException("$name has ${balance / 100} and wants ${cents / 100}")
        }
        add(Entry(Kind.WITHDRAWAL, cents))
    }

    private fun add(entry: Entry) {
        entries += entry
        balance += when (entry.kind) {
            Kind.DEPOSIT -> entry.cents
            Kind.WITHDRAWAL -> -entry.cents
        }
        for (listener in listeners) {
            listener.changed(name, balance)
        }
    }

    fun largest(count: Int): List<Entry> =
        entries.sortedByDescending { abs(it.cents) }.take(count)

    fun report(width: Int = 10): String {
        val lines = entries.mapIndexed { index, entry ->
            val sign = if (entry.kind == Kind.DEPOSIT) '+' else '-'
            "%3d %s%${width}d".format(index, sign, entry.cents)
        }
        return lines.joinToString("\n", prefix = "$name:\n")
    }

    companion object {
        const val CURRENCY = "EUR"

        fun parse(text: String): Account? {
            val parts = text.split(":")
            if (parts.size != 2) {
                return null
            }
            return Account(parts[0].trim(), parts[1].trim().toLong())
        }
    }
}

fun total(accounts: Iterable<Account>): Long {
    var sum = 0L
    for (account in accounts) {
        sum += account.balance
    }
    return sum
}

fun main() {
    val account = Account.parse("savings: 100") ?: return
    try {
        account.deposit(2_500).withdraw(700)
    } catch (error: OverdrawnException) {
        println(error.message)
    } finally {
        println(account.report())
    }
}
